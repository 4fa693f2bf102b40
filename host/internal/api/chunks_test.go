package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// A body whose chunks nobody can read is its client's fault, and its client is told so.
func TestMalformedChunks(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	h.Must(nil, "POST", "/channels", `{"name":"c"}`)
	for to, kind := range map[string]string{
		"POST /channels": "application/json", "PATCH /channels/c": "application/json", "POST /channels/c/messages": "application/json",
		"POST /channels/c/attachments": "multipart/form-data; boundary=b",
	} {
		for name, chunks := range map[string]string{"errSize": "zz\r\n{}\r\n0\r\n\r\n", "errEnd": "2\r\n{}XX\r\n0\r\n\r\n"} {
			method, path, _ := strings.Cut(to, " ")
			address := strings.TrimPrefix(h.URL(), "http://")
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(await.Deadline())
			_, err = fmt.Fprintf(c, "%s /api/v1%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%s", method, path, address, h.Key, kind, chunks)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 400 || !strings.Contains(string(text), "chunk") {
				t.Errorf("%s: %s: %d %s (%v)", to, name, resp.StatusCode, text, err)
			}
		}
	}
}
