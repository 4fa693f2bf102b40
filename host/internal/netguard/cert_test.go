package netguard

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// pemPair makes a self-signed certificate of a name.
func pemPair(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func put(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// record is a log to look into.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// eventually waits for a condition; what says which.
var eventually = await.Until

// served is the name in the certificate that a server shows.
func served(t testing.TB, address string) string {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is the certificate that is looked at
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestCertificateReplaced(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	c1, k1 := pemPair(t, "one")
	put(t, cert, c1)
	put(t, key, k1)
	var book logbook
	c, err := LoadCertificate(cert, key, slog.New(slog.NewTextHandler(&book, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.serve(ctx, 5*time.Millisecond) })
	var accepting sync.WaitGroup
	defer accepting.Wait()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := tls.NewListener(tcp, c.Config())
	accepting.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	})
	defer func() { _ = ln.Close() }()
	address := ln.Addr().String()
	shows := func(name string) {
		t.Helper()
		eventually(t, "the certificate of "+name, func() bool { return served(t, address) == name })
	}
	shows("one")

	eventually(t, "its end is told", func() bool { return book.count("ends soon") == 1 })

	// In place, one after the other: nobody is told of the moment between.
	c2, k2 := pemPair(t, "two")
	put(t, cert, c2)
	put(t, key, k2)
	shows("two")

	// By rename, as certbot's copies and others do it.
	c3, k3 := pemPair(t, "three")
	put(t, cert+".new", c3)
	put(t, key+".new", k3)
	for _, f := range []string{cert, key} {
		if err := os.Rename(f+".new", f); err != nil {
			t.Fatal(err)
		}
	}
	shows("three")

	// What does not fit is told once, and changes nothing.
	cancel()
	wg.Wait()
	if n := book.count("ends soon"); n != 1 {
		t.Errorf("its end is told %d times, expected once a day", n)
	}
	before := book.count("not replaced")
	_, k4 := pemPair(t, "four")
	broken := func(what string, n int) {
		t.Helper()
		c.Reload(false)
		if got := book.count("not replaced") - before; got != n-1 {
			t.Errorf("%s: told %d times at the first look, expected %d", what, got, n-1)
		}
		for range 20 {
			c.Reload(false)
		}
		c.Reload(true)
		if got := book.count("not replaced") - before; got != n {
			t.Errorf("%s: told %d times, expected %d", what, got, n)
		}
		shows("three")
	}
	put(t, key, k4)
	broken("another key", 1)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	broken("no key", 2)
	put(t, key, k3) // as it was
	c.Reload(false)
	put(t, key, k4)
	broken("another key again", 3)
	if strings.Contains(book.b.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
	put(t, cert, c1)
	put(t, key, k1)
	c.Reload(true)
	shows("one")
}

// As Kubernetes and certbot do it: a symbolic link of the directory, or of each
// file, is moved.
func TestCertificateBySymlink(t *testing.T) {
	dir := t.TempDir()
	version := func(n, name string) {
		if err := os.Mkdir(filepath.Join(dir, n), 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := pemPair(t, name)
		put(t, filepath.Join(dir, n, "tls.crt"), cert)
		put(t, filepath.Join(dir, n, "tls.key"), key)
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name+".tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name+".tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version("v1", "one")
	version("v2", "two")
	link("v1", "..data")
	link("..data/tls.crt", "tls.crt")
	link("..data/tls.key", "tls.key")
	c, err := LoadCertificate(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Leaf().Subject.CommonName; got != "one" {
		t.Fatal(got)
	}
	link("v2", "..data")
	c.Reload(false)
	if got := c.Leaf().Subject.CommonName; got != "two" {
		t.Errorf("%s after the link was moved, expected two", got)
	}
	link("v1/tls.crt", "tls.crt") // one of them
	c.Reload(false)
	if got := c.Leaf().Subject.CommonName; got != "two" {
		t.Errorf("%s with half a pair, expected two", got)
	}
	link("v1/tls.key", "tls.key")
	c.Reload(true)
	if got := c.Leaf().Subject.CommonName; got != "one" {
		t.Errorf("%s, expected one", got)
	}
}

func TestCertificateRefused(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	good, k := pemPair(t, "one")
	_, other := pemPair(t, "two")
	for name, c := range map[string]struct{ cert, key []byte }{
		"errEmpty": {nil, nil}, "errOther": {good, other}, "errNoKey": {good, []byte("canary-of-a-key")}, "errSwapped": {k, good}, "errLarge": {make([]byte, maxPEM+1), k},
	} {
		put(t, cert, c.cert)
		put(t, key, c.key)
		if _, err := LoadCertificate(cert, key, slog.New(slog.DiscardHandler)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadCertificate(dir, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a directory is a certificate")
	}
	put(t, cert, good)
	put(t, key, k)
	c, err := LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if conf := c.Config(); conf.MinVersion < tls.VersionTLS12 || len(conf.NextProtos) != 1 || conf.NextProtos[0] != "http/1.1" {
		t.Errorf("%+v", conf)
	}
}
