//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
)

// pluginService is the name under which go-plugin asks for health.
const pluginService = "plugin"

// serveRaw does what a plugin library does, step by step, so that each step can
// lie.
func (o options) serveRaw(lie lie, s streams) int {
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	cert, err := newCertificate()
	if err != nil {
		return complain(err)
	}
	socket := filepath.Join(dir, "plugin.sock")
	l := line{core: "1", version: versionOf(os.Getenv("PLUGIN_PROTOCOL_VERSIONS")), network: "unix", addr: socket, protocol: "grpc", cert: encode(cert)}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return complain(err)
	}
	if lie != nil {
		o.strike()
		if err := lie(o, dir, &l); err != nil {
			return complain(err)
		}
	}
	if s.sick {
		o.strike()
	}
	// What is behind the line answers, wherever that is, so that a host that
	// took the lie would get through.
	if _, err := os.Lstat(l.addr); l.network == "unix" && errors.Is(err, os.ErrNotExist) && filepath.Base(l.addr) == "x.sock" {
		if ln, err = net.Listen("unix", l.addr); err != nil {
			return complain(err)
		}
	}
	server, err := newServer(o, cert, l.plain, s)
	if err != nil {
		return complain(err)
	}
	fmt.Println(l)
	if err := server.Serve(ln); err != nil {
		return complain(err)
	}
	return 0
}

func newServer(o options, cert tls.Certificate, plain bool, s streams) (*grpc.Server, error) {
	var opts []grpc.ServerOption
	if !plain {
		hosts := x509.NewCertPool()
		if !hosts.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT"))) {
			return nil, errors.New("no certificate in PLUGIN_CLIENT_CERT")
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: hosts, MinVersion: tls.VersionTLS12,
		})))
	}
	server := grpc.NewServer(opts...)
	sick := health.NewServer()
	sick.SetServingStatus(pluginService, s.health())
	grpc_health_v1.RegisterHealthServer(server, sick)
	pb.RegisterBridgeServer(server, &bridge{o: o, streams: s})
	return server, nil
}

// versionOf is the highest of a list such as "1,2".
func versionOf(list string) string {
	all := strings.Split(list, ",")
	return all[len(all)-1]
}

func encode(c tls.Certificate) string {
	return base64.RawStdEncoding.EncodeToString(c.Certificate[0])
}

func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
