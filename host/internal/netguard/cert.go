package netguard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// CertificateEvery is how often the files of a certificate are looked at.
const CertificateEvery = 5 * time.Second

// EndNotice is how long before its end a certificate is warned of.
const EndNotice = 14 * 24 * time.Hour

// maxPEM bounds a file.
const maxPEM = 1 << 20

// Certificate is a certificate in two files, which may change at any time: in
// place, by rename, or by a symbolic link that is moved. A pair that does not fit
// leaves the one before in use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu     sync.Mutex // guards what follows
	loaded [sha256.Size]byte
	bad    [sha256.Size]byte // the state of the files, or what is wrong with them, that did not work last time
	told   bool              // of bad
}

// LoadCertificate reads the pair. Serve must run for changes to be seen. log nil =
// none.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	pair, sum, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("load TLS certificate: %w", err)
	}
	c.loaded = sum
	c.current.Store(pair)
	return c, nil
}

// Config is for a server that speaks HTTP/1.1: a WebSocket needs it, and one
// limit of connections then is one of requests.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}

// Leaf is the certificate that is in use.
func (c *Certificate) Leaf() *x509.Certificate { return c.current.Load().Leaf }

// read reads the pair, and tells its state from others.
func (c *Certificate) read() (*tls.Certificate, [sha256.Size]byte, error) {
	cert, err := readPEM(c.certFile)
	if err != nil {
		return nil, sha256.Sum256([]byte(err.Error())), err
	}
	key, err := readPEM(c.keyFile)
	if err != nil {
		return nil, sha256.Sum256([]byte(err.Error())), err
	}
	sum := sha256.Sum256(bytes.Join([][]byte{cert, key}, []byte{0}))
	pair, err := tls.X509KeyPair(cert, key) // its errors quote nothing of the key
	if err != nil {
		return nil, sum, fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, sum, nil
}

func readPEM(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, fmt.Errorf("%s: found no regular file of at most %d bytes", name, maxPEM)
	}
	return os.ReadFile(name)
}

// Reload looks at the files now. What is wrong with them is logged once: at the
// second look, since the first may have come between two files that are replaced
// one after the other, or at once if somebody asked.
func (c *Certificate) Reload(asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair, sum, err := c.read()
	switch {
	case err == nil && sum == c.loaded:
		c.bad, c.told = [sha256.Size]byte{}, false
	case err == nil:
		c.loaded, c.bad, c.told = sum, [sha256.Size]byte{}, false
		c.current.Store(pair)
		c.log.Info("TLS certificate replaced", "file", c.certFile, "names", pair.Leaf.DNSNames, "ends", pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		again := sum == c.bad
		if !again {
			c.bad, c.told = sum, false
		}
		if (again || asked) && !c.told {
			c.told = true
			c.log.Error("TLS certificate not replaced: the one before stays in use", "error", err, "ends", c.Leaf().NotAfter.UTC().Format(time.RFC3339))
		}
	}
}

// Serve looks at the files every now and then, until ctx ends.
func (c *Certificate) Serve(ctx context.Context) error { return c.serve(ctx, CertificateEvery) }

func (c *Certificate) serve(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var warned time.Time
	for {
		if now, ends := time.Now(), c.Leaf().NotAfter; ends.Sub(now) < EndNotice && now.Sub(warned) >= 24*time.Hour {
			warned = now
			c.log.Warn("TLS certificate ends soon, or has ended: renew it (told once a day)", "file", c.certFile, "ends", ends.UTC().Format(time.RFC3339))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.Reload(false)
		}
	}
}
