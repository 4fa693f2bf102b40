package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// rawBuffer is the size of the host's own socket buffers (package transport).
const rawBuffer = 1024

// serveRaw is what everything is compared with: a server that gives every
// WebSocket frame back and does nothing else, until ctx ends. It prints its url
// to w. It has a process of its own: connections end with that.
func serveRaw(ctx context.Context, w io.Writer) error {
	return serveHTTP(ctx, w, "Raw echo", echo)
}

// serveHTTP serves until ctx ends, and prints to w what listens where.
func serveHTTP(ctx context.Context, w io.Writer, what string, handler http.HandlerFunc) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	end := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer end()
	fmt.Fprintf(w, "%s%shttp://%s\n", what, listensOn, ln.Addr())
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

var rawWriteBuffers sync.Pool

func echo(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{ReadBufferSize: rawBuffer, WriteBufferSize: rawBuffer, WriteBufferPool: &rawWriteBuffers}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	defer func() { _ = ws.Close() }()
	for {
		kind, frame, err := ws.ReadMessage()
		if err != nil {
			return
		}
		if err := ws.WriteMessage(kind, frame); err != nil {
			return
		}
	}
}
