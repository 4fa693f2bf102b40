//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// line is a handshake line, in its fields, and what is served behind it.
type line struct {
	core, version, network, addr, protocol, cert string

	plain bool // serve without TLS
}

// lie makes another line of the true one. It is told the directory of sockets.
type lie func(o options, dir string, l *line) error

// lies are lines that must be refused before anybody is dialled.
var lies = map[string]lie{
	"hs-tcp":      func(o options, _ string, l *line) error { l.network, l.addr = "tcp", o.elsewhere; return nil },
	"hs-outward":  func(_ options, _ string, l *line) error { l.network, l.addr = "tcp", "192.0.2.1:80"; return nil },
	"hs-hostname": lieHostName,
	"hs-udp":      func(o options, _ string, l *line) error { l.network, l.addr = "udp", o.elsewhere; return nil },
	"hs-unixdial": func(o options, _ string, l *line) error { l.addr = "dns:///" + o.elsewhere; return nil },
	"hs-outside":  lieOutside,
	"hs-dotdot":   lieDotDot,
	"hs-symlink":  lieSymlink,
	"hs-file":     lieFile,
	"hs-missing":  func(_ options, dir string, l *line) error { l.addr = filepath.Join(dir, "nobody.sock"); return nil },
	"hs-abstract": func(_ options, _ string, l *line) error { l.addr = "@pontoon-hostile"; return nil },

	"hs-cert-plain": func(_ options, _ string, l *line) error { l.plain = true; return nil },
	"hs-nocert":     func(_ options, _ string, l *line) error { l.plain, l.cert = true, ""; return nil },
	"hs-badcert":    func(_ options, _ string, l *line) error { l.cert = "!!!" + l.cert[3:]; return nil },
	"hs-notcert":    func(_ options, _ string, l *line) error { l.cert = "AAAA"; return nil },
	"hs-othercert":  lieOtherCertificate,

	"hs-core":    func(_ options, _ string, l *line) error { l.core = "2"; return nil },
	"hs-version": func(_ options, _ string, l *line) error { l.version = "99"; return nil },
	"hs-word":    func(_ options, _ string, l *line) error { l.version = "one"; return nil },
	"hs-netrpc":  func(_ options, _ string, l *line) error { l.protocol = "netrpc"; return nil },
	"hs-late":    func(options, string, *line) error { time.Sleep(20 * time.Second); return nil }, // the host waits 15 s
}

func lieHostName(o options, _ string, l *line) error {
	_, port, err := net.SplitHostPort(o.elsewhere)
	l.network, l.addr = "tcp", "localhost:"+port
	return err
}

// lieOutside serves honestly, but elsewhere.
func lieOutside(_ options, _ string, l *line) error {
	dir, err := os.MkdirTemp("", "hostile-")
	l.addr = filepath.Join(dir, "x.sock")
	return err
}

func lieDotDot(_ options, dir string, l *line) error {
	l.addr = dir + "/../" + filepath.Base(dir) + "/plugin.sock"
	return nil
}

func lieSymlink(_ options, dir string, l *line) error {
	link := filepath.Join(dir, "link.sock")
	err := os.Symlink(l.addr, link)
	l.addr = link
	return err
}

func lieFile(_ options, dir string, l *line) error {
	l.addr = filepath.Join(dir, "file.sock")
	return os.WriteFile(l.addr, nil, 0o600)
}

func lieOtherCertificate(_ options, _ string, l *line) error {
	other, err := newCertificate()
	l.cert = encode(other)
	return err
}

func (l line) String() string {
	return strings.Join([]string{l.core, l.version, l.network, l.addr, l.protocol, l.cert}, "|")
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "hostile:", err)
	return 1
}
