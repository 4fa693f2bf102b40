package supervisor

import (
	"bufio"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	plugin "github.com/hashicorp/go-plugin"
)

// maxHandshake bounds the line by which a plugin says where it serves; a
// certificate of it has about 1 KiB.
const maxHandshake = 8 << 10

// versionError is a plugin that speaks no version of ours: starting it again
// would not help.
type versionError struct{ what string }

func (e *versionError) Error() string { return e.what }

// readHandshake reads the first line, no further.
func readHandshake(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		b, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return "", errors.New("handshake: found nothing on standard output, expected CORE|VERSION|unix|PATH|grpc|CERTIFICATE")
		case err != nil:
			return "", fmt.Errorf("handshake: line not ended: %w", err)
		case b == '\n':
			return strings.TrimRight(string(line), "\r"), nil
		case len(line) == maxHandshake:
			return "", fmt.Errorf("handshake: line of over %d bytes, expected CORE|VERSION|unix|PATH|grpc|CERTIFICATE", maxHandshake)
		}
		line = append(line, b)
	}
}

// checkHandshake refuses every line that could make the host dial elsewhere,
// trust another certificate, or speak another protocol. dir is the directory
// that the plugin was given for its socket.
func checkHandshake(line, dir string, versions []int) error {
	f := strings.Split(line, "|")
	if len(f) < 6 || len(f) > 7 {
		return fmt.Errorf("handshake: found %d fields in %q, expected CORE|VERSION|unix|PATH|grpc|CERTIFICATE", len(f), clip(line))
	}
	if f[0] != strconv.Itoa(plugin.CoreProtocolVersion) {
		return &versionError{fmt.Sprintf("handshake: found core version %q, expected %d", clip(f[0]), plugin.CoreProtocolVersion)}
	}
	if v, err := strconv.Atoi(f[1]); err != nil || !slices.Contains(versions, v) {
		return &versionError{fmt.Sprintf("handshake: found plugin version %q, this host speaks %v", clip(f[1]), versions)}
	}
	if f[2] != "unix" {
		return fmt.Errorf("handshake: found network %q, expected unix", clip(f[2]))
	}
	if err := checkSocket(f[3], dir); err != nil {
		return err
	}
	if f[4] != string(plugin.ProtocolGRPC) {
		return fmt.Errorf("handshake: found protocol %q, expected %s", clip(f[4]), plugin.ProtocolGRPC)
	}
	der, err := base64.RawStdEncoding.DecodeString(f[5])
	if err != nil {
		return fmt.Errorf("handshake: certificate: %w, expected base64 without padding", err)
	}
	if _, err := x509.ParseCertificate(der); err != nil || len(der) == 0 {
		return errors.New("handshake: certificate: expected one of X.509 in DER: the host speaks only TLS")
	}
	if len(f) == 7 && f[6] != "" && f[6] != "false" && f[6] != "true" {
		return fmt.Errorf("handshake: found %q as seventh field, expected true, false or nothing", clip(f[6]))
	}
	return nil
}

// checkSocket wants a socket directly inside dir, which is ours alone.
func checkSocket(path, dir string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || filepath.Dir(path) != filepath.Clean(dir) {
		return fmt.Errorf("handshake: found socket %q, expected one directly in PLUGIN_UNIX_SOCKET_DIR", clip(path))
	}
	info, err := os.Lstat(path)
	if err != nil {
		var told *fs.PathError // repeats the path as it is
		if errors.As(err, &told) {
			err = told.Err
		}
		return fmt.Errorf("handshake: socket %q: %w", clip(path), err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("handshake: found a %s at %q, expected a socket", info.Mode().Type(), filepath.Base(path))
	}
	return nil
}

// clip keeps what a plugin says short, and one line.
func clip(s string) string { return clipTo(s, 120) }

func clipTo(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
