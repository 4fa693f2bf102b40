package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Parrot is an agent that is a row: it says what its config says.
type Parrot struct {
	Say    string `json:"say"`
	Secret string `json:"secret"`

	mu      sync.Mutex
	revoked []int64
	expired []int64
}

// Handle answers with the word and what it was told.
func (p *Parrot) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	_, err := r.Send(ctx, message.Text(p.Say+": "+t.Message.Text))
	return err
}

// Revoke notes which key was revoked.
func (p *Parrot) Revoke(key int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revoked = append(p.revoked, key)
}

// Expire notes for which key all others expire.
func (p *Parrot) Expire(but int64, _ time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expired = append(p.expired, but)
}

// Told are the keys that Revoke and Expire were called with.
func (p *Parrot) Told() (revoked, expired []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.revoked), slices.Clone(p.expired)
}

// Parrots registers the kind "parrot", which has keys, and "mute", which has not.
func Parrots(s *Setup) {
	s.Kinds = map[string]agent.Kind{
		"parrot": {
			Keys: true, Secrets: []string{"secret"}, About: "for tests",
			Check: func(config json.RawMessage) error {
				var p Parrot
				if err := agent.Decode(config, &p); err != nil {
					return err
				}
				if p.Say == "" {
					return errors.New("say: absent, expected a word")
				}
				return nil
			},
			Make: func(row ledger.Agent) (hub.Agent, error) {
				p := new(Parrot)
				return p, json.Unmarshal(row.Config, p)
			},
		},
		"mute": {Make: func(ledger.Agent) (hub.Agent, error) { return NewHeld(), nil }},
	}
}
