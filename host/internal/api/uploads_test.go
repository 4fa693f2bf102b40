package api_test

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// An adapter cannot reserve more uploads by coming again.
func TestUploadsBounded(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	row := h.Channel("c")
	refused := false
	for i := 0; i < 5 && !refused; i++ { // a connection may announce 50 at once
		c := h.Attach11(t, row, "parts")
		for range 40 {
			c.Send(`{"type":"upload","name":"a.txt","mime_type":"text/plain","size_bytes":1}`)
			var ack struct {
				Error     string
				Retryable bool
			}
			c.Read(&ack)
			if strings.Contains(ack.Error, "found 100 uploads that are reserved and not made") && ack.Retryable {
				refused = true
				break
			} else if ack.Error != "" {
				t.Fatalf("%+v", ack)
			}
		}
	}
	if !refused {
		t.Error("200 uploads are reserved")
	}
}
