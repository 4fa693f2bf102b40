package supervisor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
)

// launched is a plugin that serves.
type launched struct {
	client *plugin.Client
	far    *grpcconn.Plugin
}

// launch starts the process and gets to where Configure can be called, within
// the deadline of ctx. On failure the process is told to die; the caller waits
// for it.
//
// go-plugin knows no contexts: what hangs goes on in a goroutine that ends when
// the process does.
func launch(ctx context.Context, p *process, timeout time.Duration) (*launched, error) {
	certificate, err := newCertificate()
	if err != nil {
		return nil, err
	}
	type result struct {
		l   *launched
		err error
	}
	done := make(chan result, 1)
	client := newClient(p, certificate, timeout)
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil { // go-plugin's parsers trust plugins
				r = result{err: fmt.Errorf("go-plugin panicked: %v\n%s", v, debug.Stack())}
			}
			done <- r
		}()
		r.l, r.err = connect(client)
	}()
	select {
	case r := <-done:
		err = r.err
		if err == nil {
			return r.l, nil
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if refused := p.handshakeError(); refused != nil {
		err = refused
	} else if ctx.Err() == nil {
		p.mayExit(pipeGrace)
	}
	_ = p.Kill(ctx)
	go client.Kill() // frees what it holds as soon as the process is gone
	return nil, err
}

func connect(client *plugin.Client) (*launched, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(grpcconn.PluginName)
	if err != nil {
		return nil, err
	}
	far, ok := raw.(*grpcconn.Plugin)
	if !ok {
		return nil, errors.New("not a bridge plugin")
	}
	return &launched{client, far}, nil
}

func newClient(p *process, certificate tls.Certificate, timeout time.Duration) *plugin.Client {
	sets := grpcconn.PluginSets()
	for v := range sets {
		p.versions = append(p.versions, v)
	}
	socketBase := p.dir
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  grpcconn.Handshake(),
		VersionedPlugins: sets,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		StartTimeout:     timeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketBase},
		// What AutoMTLS does, with a curve that every TLS library knows.
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ServerName: "localhost"},
		Logger:    hclog.NewNullLogger(), // whatever counts is an error here too
		GRPCDialOptions: append(grpcconn.DialOptions(),
			grpc.WithChainStreamInterceptor(onlyBridge)),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			pemText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
			p.env = append(p.env, cmd.Env...)
			p.env = append(p.env, "PLUGIN_CLIENT_CERT="+string(pemText))
			p.dir = dir
			if u := p.owner; u != nil && u.UID != os.Getuid() {
				if err := os.Chown(dir, u.UID, u.GID); err != nil {
					return nil, fmt.Errorf("directory of its socket: %w", err)
				}
			}
			return p, nil
		},
	})
}

// onlyBridge keeps go-plugin from opening its broker and its stdio streams: we
// use neither, and a plugin could flood us through them.
func onlyBridge(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	switch method {
	case "/plugin.GRPCBroker/StartStream", "/plugin.GRPCStdio/StreamStdio":
		return nil, status.Error(codes.Unimplemented, "not used")
	}
	return open(ctx, d, c, method, o...)
}

// certificateLife is longer than any host runs.
const certificateLife = 10 * 365 * 24 * time.Hour

// newCertificate makes the host's end of mutual TLS, for one life of a plugin.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "localhost", Organization: []string{"Pontoon"}},
		DNSNames:     []string{"localhost"},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		// Verified against itself as its own authority.
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
