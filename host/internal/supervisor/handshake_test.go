package supervisor

import (
	"bufio"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// socketDir is a plugin's directory with one socket, plugin.sock, and what must
// not be taken for one.
func socketDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "pontoon-") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, "plugin.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "file.sock"), nil, 0o600),
		os.Symlink(filepath.Join(dir, "plugin.sock"), filepath.Join(dir, "link.sock")),
		os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.Symlink(dir, dir+"-link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(dir + "-link") })
	return dir
}

func goodCertificate(t testing.TB) string {
	c, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawStdEncoding.EncodeToString(c.Certificate[0])
}

func TestCheckHandshake(t *testing.T) {
	t.Parallel()
	dir, cert := socketDir(t), goodCertificate(t)
	sock := dir + "/plugin.sock"
	padded := base64.StdEncoding.EncodeToString([]byte("x"))
	for name, c := range map[string]struct {
		line string
		want string // in the error; "" = none
	}{
		"ok":               {"1|1|unix|" + sock + "|grpc|" + cert, ""},
		"okSeventh":        {"1|1|unix|" + sock + "|grpc|" + cert + "|true", ""},
		"okSeventhEmpty":   {"1|1|unix|" + sock + "|grpc|" + cert + "|", ""},
		"okOtherVersion":   {"1|3|unix|" + sock + "|grpc|" + cert, ""},
		"errEmpty":         {"", "1 fields"},
		"errWord":          {"hello", "1 fields in \"hello\""},
		"errFive":          {"1|1|unix|" + sock + "|grpc", "5 fields"},
		"errEight":         {"1|1|unix|" + sock + "|grpc|" + cert + "|true|x", "8 fields"},
		"errCore":          {"2|1|unix|" + sock + "|grpc|" + cert, `core version "2", expected 1`},
		"errCoreEmpty":     {"|1|unix|" + sock + "|grpc|" + cert, `core version ""`},
		"errCoreSpace":     {" 1|1|unix|" + sock + "|grpc|" + cert, `core version " 1"`},
		"errVersion":       {"1|99|unix|" + sock + "|grpc|" + cert, `plugin version "99", this host speaks [1 3]`},
		"errVersionWord":   {"1|one|unix|" + sock + "|grpc|" + cert, `plugin version "one"`},
		"errVersionBig":    {"1|99999999999999999999|unix|" + sock + "|grpc|" + cert, "plugin version"},
		"errTCP":           {"1|1|tcp|127.0.0.1:1|grpc|" + cert, `network "tcp", expected unix`},
		"errHostName":      {"1|1|tcp|example.org:80|grpc|" + cert, `network "tcp"`},
		"errUnixgram":      {"1|1|unixgram|" + sock + "|grpc|" + cert, "network"},
		"errNetworkCase":   {"1|1|UNIX|" + sock + "|grpc|" + cert, "network"},
		"errURL":           {"1|1|unix|dns:///example.org:80|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errRelative":      {"1|1|unix|plugin.sock|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errAbstract":      {"1|1|unix|@x|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errAbstractNUL":   {"1|1|unix|\x00x|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errNoPath":        {"1|1|unix||grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errElsewhere":     {"1|1|unix|/run/docker.sock|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errDotDot":        {"1|1|unix|" + dir + "/../" + filepath.Base(dir) + "/plugin.sock|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errDoubleSlash":   {"1|1|unix|" + dir + "//plugin.sock|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errBelow":         {"1|1|unix|" + dir + "/sub/x|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errThroughLink":   {"1|1|unix|" + dir + "-link/plugin.sock|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errDirItself":     {"1|1|unix|" + dir + "|grpc|" + cert, "PLUGIN_UNIX_SOCKET_DIR"},
		"errMissing":       {"1|1|unix|" + dir + "/nobody|grpc|" + cert, "no such file"},
		"errMissingOdd":    {"1|1|unix|" + dir + "/\xff\n|grpc|" + cert, "/\uFFFD \": no such file"},
		"errNUL":           {"1|1|unix|" + sock + "\x00|grpc|" + cert, "socket"},
		"errFile":          {"1|1|unix|" + dir + "/file.sock|grpc|" + cert, `at "file.sock", expected a socket`},
		"errLink":          {"1|1|unix|" + dir + "/link.sock|grpc|" + cert, `at "link.sock", expected a socket`},
		"errDir":           {"1|1|unix|" + dir + "/sub|grpc|" + cert, `at "sub", expected a socket`},
		"errNetRPC":        {"1|1|unix|" + sock + "|netrpc|" + cert, `protocol "netrpc", expected grpc`},
		"errProtocolEmpty": {"1|1|unix|" + sock + "||" + cert, `protocol ""`},
		"errNoCert":        {"1|1|unix|" + sock + "|grpc|", "X.509"},
		"errNotBase64":     {"1|1|unix|" + sock + "|grpc|!!!", "base64 without padding"},
		"errPadded":        {"1|1|unix|" + sock + "|grpc|" + padded, "base64 without padding"},
		"errNotCert":       {"1|1|unix|" + sock + "|grpc|AAAA", "X.509"},
		"errCertTail":      {"1|1|unix|" + sock + "|grpc|" + cert[:len(cert)-8], "X.509"},
		"errSeventh":       {"1|1|unix|" + sock + "|grpc|" + cert + "|maybe", `"maybe" as seventh field`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkHandshake(c.line, dir, []int{1, 3})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("found error %v, expected one with %q", err, c.want)
			}
			// Only what no restart mends may say so.
			var version *versionError
			if is := errors.As(err, &version); is != (strings.HasPrefix(name, "errCore") || strings.HasPrefix(name, "errVersion")) {
				t.Errorf("%v counts as a mismatch of versions: %t", err, is)
			}
		})
	}
}

func TestReadHandshake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, line, err string }{
		"ok":          {"1|1|x\nmore", "1|1|x", ""},
		"okCRLF":      {"1|1|x\r\nmore", "1|1|x", ""},
		"okEmpty":     {"\n", "", ""},
		"okLongest":   {strings.Repeat("x", maxHandshake) + "\n", strings.Repeat("x", maxHandshake), ""},
		"errNothing":  {"", "", "found nothing"},
		"errNoEnd":    {"1|1|", "", "line not ended"},
		"errTooLong":  {strings.Repeat("x", maxHandshake+1) + "\n", "", "line of over 8192 bytes"},
		"errForever":  {strings.Repeat("x", 1<<20), "", "line of over 8192 bytes"},
		"errNULs":     {strings.Repeat("\x00", 1<<16), "", "line of over"},
		"errOnlyCR":   {"\r\r\r", "", "line not ended"},
		"okSeveralCR": {"x\r\r\n", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, err := readHandshake(bufio.NewReader(strings.NewReader(c.in)))
			if line != c.line {
				t.Errorf("found line %q", clip(line))
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("found error %v, expected %q", err, c.err)
			}
		})
	}
}

// What follows the line is left to be drained.
func TestReadHandshakeReadsOneLine(t *testing.T) {
	t.Parallel()
	in := bufio.NewReader(strings.NewReader("first\nsecond\n"))
	if _, err := readHandshake(in); err != nil {
		t.Fatal(err)
	}
	if rest, err := in.ReadString('\n'); rest != "second\n" {
		t.Errorf("then found %q, %v", rest, err)
	}
}

// Whatever a plugin writes first, a line that gets through names a socket in the
// plugin's own directory, and errors are short and printable.
func FuzzHandshake(f *testing.F) {
	dir, cert := socketDir(f), goodCertificate(f)
	for _, seed := range []string{
		"1|1|unix|DIR/plugin.sock|grpc|CERT\n", "1|1|unix|DIR/plugin.sock|grpc|CERT|true\n", "1|1|tcp|127.0.0.1:1|grpc|CERT\n",
		"1|1|unix|DIR/../x|grpc|CERT\n", "1|1|unix|DIR/link.sock|grpc|CERT\n", "\n", "|||||\n", "\xff|\x00\n", "1|1|unix|DIR/\xff|grpc|CERT\n", "1|99|unix|DIR|grpc|\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.NewReplacer("DIR", dir, "CERT", cert).Replace(in)
		line, err := readHandshake(bufio.NewReader(strings.NewReader(in)))
		if err == nil {
			if len(line) > maxHandshake || strings.Contains(line, "\n") {
				t.Fatalf("line of %d bytes", len(line))
			}
			err = checkHandshake(line, dir, []int{1})
		}
		if err == nil {
			if got := strings.Split(line, "|"); got[0] != "1" || got[1] != "1" || got[2] != "unix" || got[3] != dir+"/plugin.sock" || got[4] != "grpc" {
				t.Fatalf("let through: %q", line)
			}
			return
		}
		if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\n\r\x00\x1b") || !utf8.ValidString(text) {
			t.Fatalf("error of %d bytes: %q", len(text), clip(text))
		}
	})
}
