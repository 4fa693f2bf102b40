// Package irctest runs a private InspIRCd and plain IRC users for tests. Nothing
// in it is imported outside tests; what fails, fails the test.
//
//	srv := irctest.Start(t, irctest.Options{})
//	alice := srv.Dial(t, "alice")
//	alice.Join("#ops")
//	alice.Say("#ops", "hello")
package irctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds how long InspIRCd may take from exec to its first accept.
const startTimeout = 15 * time.Second

// Options changes the server from its defaults. The zero value is right for most tests.
type Options struct {
	Password string   // connect password; "" = none
	Connect  string   // attributes of the <connect> block, in place of the default without flood limits
	Modules  []string // further modules, such as "chanhistory"
	Extra    string   // further configuration text, verbatim
}

// Server is a running InspIRCd that listens on loopback only.
type Server struct {
	Addr    string // host:port, plain text
	TLSAddr string // host:port, TLS with a self-signed certificate
	CAFile  string // PEM of that certificate, valid for the address

	binary string
	config string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for
}

// Start starts an InspIRCd of its own for t, waits until it accepts users and
// stops it when t ends. Without InspIRCd the test fails: a skipped test would
// look like a passed one.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	binary, err := exec.LookPath("inspircd")
	if err != nil {
		binary = "/usr/sbin/inspircd" // sbin is not in every user's PATH
		if _, err := os.Stat(binary); err != nil {
			t.Fatal("irctest: no InspIRCd found; install the Debian package inspircd")
		}
	}
	dir := t.TempDir()
	s := &Server{
		binary: binary,
		config: filepath.Join(dir, "inspircd.conf"),
		log:    filepath.Join(dir, "inspircd.log"),
		CAFile: filepath.Join(dir, "cert.pem"),
	}
	ip := ownIP()
	s.Addr, s.TLSAddr = net.JoinHostPort(ip, "6667"), net.JoinHostPort(ip, "6697") // the ports that are usual for IRC
	writeCertificate(t, ip, s.CAFile, filepath.Join(dir, "key.pem"))
	if err := os.WriteFile(s.config, []byte(configText(dir, ip, o)), 0o600); err != nil {
		t.Fatalf("irctest: %v", err)
	}
	if err := s.run(); err != nil {
		t.Fatalf("irctest: start InspIRCd: %v\n%s", err, s.logText())
	}
	t.Cleanup(s.stop)
	return s
}

// Stop kills the server as a crash would: no QUIT, no ERROR to its users.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop()
}

// Restart starts a stopped server again on the same addresses, with no users and no channels.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.stop()
	if err := s.run(); err != nil {
		t.Fatalf("irctest: restart InspIRCd: %v\n%s", err, s.logText())
	}
}

func (s *Server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // by its own pid; "already finished" is fine
	<-s.exited
	s.cmd = nil
}

// run starts the process and returns once both addresses accept, or once it failed to.
func (s *Server) run() error {
	args := []string{"--nofork", "--nopid", "--config", s.config}
	if os.Geteuid() == 0 {
		args = append(args, "--runasroot")
	}
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the child has its own copy
	cmd := exec.Command(s.binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // a kill is the usual end
	}()
	s.cmd, s.exited = cmd, exited
	deadline := time.Now().Add(startTimeout)
	for _, addr := range []string{s.Addr, s.TLSAddr} {
		for {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				_ = c.Close()
				break
			}
			select {
			case <-exited:
				s.cmd = nil
				return fmt.Errorf("it exited before it accepted on %s", addr)
			case <-time.After(10 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				s.stop()
				return fmt.Errorf("it does not accept on %s after %s: %w", addr, startTimeout, err)
			}
		}
	}
	return nil
}

func (s *Server) logText() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// ownIP returns a loopback address that nobody else uses. A free port of 127.0.0.1 may
// be taken before InspIRCd binds it, and InspIRCd goes on without it: tests were served
// by whoever had the port, until that was gone.
func ownIP() string {
	var b [3]byte
	_, _ = rand.Read(b[:])                                                  // never fails
	return netip.AddrFrom4([4]byte{127, b[0] | 1, b[1], b[2] | 1}).String() // not 127.0.0.x, where others listen
}

func configText(dir, ip string, o Options) string {
	var b strings.Builder
	// Quotes inside values are &quot; in InspIRCd's format; dir comes from t.TempDir and has none.
	fmt.Fprintf(&b, "<config format=\"xml\">\n")
	fmt.Fprintf(&b, "<server name=\"irc.test\" description=\"test\" network=\"TestNet\">\n")
	fmt.Fprintf(&b, "<admin name=\"t\" nick=\"t\" email=\"t@irc.test\">\n")
	fmt.Fprintf(&b, "<path configdir=%q datadir=%q logdir=%q runtimedir=%q>\n", dir, dir, dir, dir)
	for _, m := range append([]string{"cap", "ircv3", "ircv3_accounttag", "ircv3_batch", "ircv3_chghost", "ircv3_servertime", "botmode", "ssl_gnutls"}, o.Modules...) {
		fmt.Fprintf(&b, "<module name=%q>\n", m)
	}
	fmt.Fprintf(&b, "<sslprofile name=\"own\" provider=\"gnutls\" certfile=%q keyfile=%q>\n", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	fmt.Fprintf(&b, "<bind address=%q port=\"6667\" type=\"clients\">\n", ip)
	fmt.Fprintf(&b, "<bind address=%q port=\"6697\" type=\"clients\" sslprofile=\"own\">\n", ip)
	connect := o.Connect
	if connect == "" {
		connect = `commandrate="100000" threshold="10000" fakelag="no" recvq="65536" softsendq="65536" hardsendq="1M"`
	}
	fmt.Fprintf(&b, "<connect allow=\"*\" resolvehostnames=\"no\" timeout=\"20\" pingfreq=\"60\" localmax=\"100\" globalmax=\"100\" maxconnwarn=\"no\" %s", connect)
	if o.Password != "" {
		fmt.Fprintf(&b, " password=%q", o.Password)
	}
	fmt.Fprintf(&b, ">\n<connectban threshold=\"1000\">\n<performance clonesonconnect=\"no\">\n<dns server=\"127.0.0.1\" timeout=\"1\">\n")
	fmt.Fprintf(&b, "<options casemapping=\"rfc1459\">\n<log method=\"file\" type=\"* -USERINPUT -USEROUTPUT\" level=\"default\" target=\"ircd.log\">\n")
	b.WriteString(o.Extra)
	return b.String()
}

func writeCertificate(t testing.TB, ip, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("irctest: %v", err)
	}
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "irc.test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		IPAddresses:           []net.IP{net.ParseIP(ip)},
		DNSNames:              []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("irctest: %v", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("irctest: %v", err)
	}
	for _, f := range []struct {
		name, block string
		der         []byte
	}{{certFile, "CERTIFICATE", der}, {keyFile, "EC PRIVATE KEY", keyDER}} {
		if err := os.WriteFile(f.name, pem.EncodeToMemory(&pem.Block{Type: f.block, Bytes: f.der}), 0o600); err != nil {
			t.Fatalf("irctest: %v", err)
		}
	}
}
