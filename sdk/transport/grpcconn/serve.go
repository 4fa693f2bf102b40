package grpcconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
)

// What go-plugin puts into a plugin's environment.
const (
	socketDirectory = "PLUGIN_UNIX_SOCKET_DIR"
	hostCertificate = "PLUGIN_CLIENT_CERT"
)

// Serve announces the plugin on standard output, to which nothing may have been
// written before, and serves until the host ends the service. It does by itself
// what docs/plugins.md asks of an author in any language: go-plugin's own Serve
// links net/rpc, which makes the linker keep every exported method of a program.
func (s *Server) Serve() (err error) {
	defer func() {
		s.failure = err
		close(s.gone)
	}()
	config, certificate, err := mutualTLS(os.Getenv(hostCertificate))
	if err != nil {
		return fmt.Errorf("secure the plugin's service: %w", err)
	}
	path := filepath.Join(os.Getenv(socketDirectory), "plugin"+rand.Text()[:8])
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("open the plugin's socket: %w", err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.MaxRecvMsgSize(maxMessage), grpc.ChainUnaryInterceptor(s.alive))
	pb.RegisterBridgeServer(server, s)
	healthy := health.NewServer()
	healthy.SetServingStatus(healthService, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	server.RegisterService(&controller, server)
	if _, err := fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc|%s\n", PluginVersion, path, base64.RawStdEncoding.EncodeToString(certificate)); err != nil {
		_ = listener.Close()
		return fmt.Errorf("announce the plugin: %w", err)
	}
	return server.Serve(listener) // nil after Stop, and the socket's file is gone
}

// controller is go-plugin's service by which a host ends a plugin's.
var controller = grpc.ServiceDesc{
	ServiceName: "plugin.GRPCController",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Shutdown",
		Handler: func(server any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(&emptypb.Empty{}); err != nil {
				return nil, err
			}
			server.(*grpc.Server).Stop()
			return &emptypb.Empty{}, nil
		},
	}},
}

// certificateLife is longer than any plugin runs.
const certificateLife = 10 * 365 * 24 * time.Hour

// mutualTLS makes a certificate for this start, returned as DER too, and trusts
// the host's alone, which is PEM.
func mutualTLS(host string) (*tls.Config, []byte, error) {
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(host)) {
		return nil, nil, errors.New(hostCertificate + ": found no certificate")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    trusted,
		MinVersion:   tls.VersionTLS12,
	}, der, nil
}
