//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/plugin"
)

// behave runs an honest adapter, and beside it what it does behind its host's
// back once it serves. It does not return.
func behave(behind func()) {
	os.Args = os.Args[:1] // the rest is not for the SDK
	plugin.Main("hostile", &honest{behind: behind})
}

// honest is an adapter whose platform is a TCP port of lines:
//
//	say TEXT   delivers a message
//	env        is answered by "env NAME NAME …": what it got of the environment
//	print N    prints N lines each through os.Stdout and os.Stderr
//	blab       panics with the password of its config in the message
//
// What the host sends is written to every connection as "got TEXT".
type honest struct {
	behind   func() // nil = it has nothing to hide
	password string // set before anybody connects

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// Run implements sdk.Adapter.
func (a *honest) Run(ctx context.Context, h *sdk.Host) error {
	var config struct {
		PortFile string `json:"port_file"`
		Password string `json:"password"`
	}
	if err := h.Config(&config); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	if config.PortFile != "" {
		// Renamed, so that nobody reads half of it.
		if err := os.WriteFile(config.PortFile+"~", []byte(ln.Addr().String()), 0o600); err != nil {
			return err
		}
		if err := os.Rename(config.PortFile+"~", config.PortFile); err != nil {
			return err
		}
	}
	a.password = config.Password
	if a.behind != nil {
		go a.behind()
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return nil //nolint:nilerr // ctx ended
		}
		a.mu.Lock()
		a.conns = append(a.conns, c)
		a.mu.Unlock()
		go a.hear(ctx, h, c)
	}
}

func (a *honest) hear(ctx context.Context, h *sdk.Host, c net.Conn) {
	for in := bufio.NewScanner(c); in.Scan(); {
		verb, rest, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "say":
			if err := h.Deliver(ctx, sdk.Event{ConversationID: "line", UserID: "line", Text: rest}); err != nil {
				h.Log.Error("not delivered", "error", err)
			}
		case "env":
			var names []string
			for _, v := range os.Environ() {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			fmt.Fprintln(c, "env", strings.Join(names, " "))
		case "blab":
			fmt.Printf("%s %q %x\n", a.password, a.password, a.password)
			fmt.Fprintln(os.Stderr, base64.StdEncoding.EncodeToString([]byte(a.password)), url.QueryEscape(a.password))
			h.Log.Error("can't log in", "password", a.password)
			panic("hostile: can't log in with " + a.password)
		case "print":
			var n int
			_, _ = fmt.Sscan(rest, &n)
			for i := range n {
				fmt.Println("printed to standard output", i)
				fmt.Fprintln(os.Stderr, "printed to standard error", i)
			}
			fmt.Fprintln(c, "printed")
		}
	}
}

// Send implements sdk.Adapter.
func (a *honest) Send(_ context.Context, _ sdk.Target, text string) (sdk.Receipt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		fmt.Fprintln(c, "got", text)
	}
	return sdk.Receipt{}, nil
}
