package bridge

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const fuzzToken = "fuzz-token-0123456789"

// script is a Conn that plays an adapter: it sends its frames and goes.
type script struct {
	frames [][]byte

	mu    sync.Mutex // guards what follows
	wrote [][]byte
	code  wire.CloseCode
}

func (s *script) Read() ([]byte, error) {
	s.mu.Lock()
	closed := s.code != 0
	s.mu.Unlock()
	if len(s.frames) == 0 || closed {
		return nil, errors.New("end of script")
	}
	f := s.frames[0]
	s.frames = s.frames[1:]
	return f, nil
}

func (s *script) Write(frames ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		s.wrote = append(s.wrote, append([]byte(nil), f...))
	}
	return nil
}

func (s *script) Close(code wire.CloseCode, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
	return nil
}

func (s *script) Ping() error      { return nil }
func (s *script) Heard() time.Time { return time.Now() }

// FuzzRegister plays any first frame and any second one: the host must not
// panic, must answer the first with an acknowledgement, and must let nobody in
// whose first frame is no register with the token.
func FuzzRegister(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"register","token":"` + fuzzToken + `","platform":"x","capabilities":["text"]}`, `{"type":"message","text":"hi"}`},
		{`{"type":"register","token":"wrong-token-000000"}`, `{}`},
		{`{"type":"register"}`, ``},
		{`{"type":"message","text":"x"}`, `{"type":"ping"}`},
		{`{"type":"register","capabilities":"text"}`, `[]`},
		{"\xef\xbb\xbf{}", `null`},
		{`{"type":"register","token":"` + fuzzToken + `","capabilities":null,"metadata":{"a":[1]}}`, `{"type":"card_action","action":"cmd:/help"}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	st, err := sqlite.Open(f.Context(), blank.Dir(f, f.TempDir()), sqlite.Options{})
	if err != nil {
		f.Fatal(err)
	}
	secret := auth.NewCredential(fuzzToken, time.Time{})
	if _, err := st.CreateChannel(f.Context(), ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true, Agent: "echo"}, &secret, ledger.Change{Actor: "test", Action: "create"}); err != nil {
		f.Fatal(err)
	}
	h := hub.New(hub.Options{Rate: 1e9, Store: st, Commands: command.New(), Agents: hub.Fixed{"echo": &agent.Echo{Pause: time.Millisecond}}})
	slots := New(Local(h), auth.NewGate(st, nil), Options{})
	f.Cleanup(func() {
		slots.Close()
		h.Close()
		if err := st.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if len(first) > wire.MaxFrame || len(second) > wire.MaxFrame {
			return // the transport refuses it
		}
		c := &script{frames: [][]byte{first, second}}
		n := newSession(slots, c, Origin{Transport: "test"})
		n.serve()
		in, werr := wire.DecodeInbound(first)
		right := werr == nil && in.Type == wire.TypeRegister && in.Register.Token == fuzzToken
		if n.inbox != nil != right {
			t.Fatalf("let in: %v, should be %v", n.inbox != nil, right)
		}
		if !right && (len(c.wrote) != 1 || c.code != wire.CloseRefused) {
			t.Fatalf("refused with %q and close %d", c.wrote, c.code)
		}
		for _, frame := range c.wrote {
			if _, err := wire.DecodeOutbound(frame); err != nil {
				t.Fatalf("the host wrote %q: %v", frame, err)
			}
		}
	})
}
