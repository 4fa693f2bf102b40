package api

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Ledger is what the API reads and changes.
type Ledger interface {
	ledger.Reader
	ledger.Directory
	Agent(ctx context.Context, ref string) (ledger.Agent, error)
	AgentKeys(ctx context.Context, agent, after int64, n int) ([]ledger.Token, error)
	Agents(ctx context.Context, after int64, n int) ([]ledger.Agent, error)
	Audit(ctx context.Context, want ledger.AuditQuery, before int64, n int) ([]ledger.Change, error)
	AuditAfter(ctx context.Context, want ledger.AuditQuery, after int64, n int) ([]ledger.Change, error)
	ChangedSince(ctx context.Context, last ledger.MessageID, n int) ([]ledger.Entry, error)
	Conversations(ctx context.Context, channels []int64, before ledger.MessageID, n int) ([]ledger.ConversationInfo, error)
	CountDead(ctx context.Context) (ledger.DeadCounts, error)
	CreateAgent(ctx context.Context, a ledger.Agent, key *ledger.NewToken, by ledger.Change) (ledger.Agent, error)
	CreateKey(ctx context.Context, k ledger.Key, n ledger.NewToken, by ledger.Change) (ledger.Key, error)
	Dead(ctx context.Context, channel int64, why ledger.Reason, before ledger.MessageID, n int) ([]ledger.Entry, error)
	DeleteAgent(ctx context.Context, a ledger.Agent, by ledger.Change) error
	DeleteSecret(ctx context.Context, name string, by ledger.Change) error
	DeleteSession(ctx context.Context, id int64, by ledger.Change) error
	DeleteSessions(ctx context.Context, by ledger.Change) (ended int, err error)
	Ends(ctx context.Context, channel int64) (ledger.Ends, error)
	GiveWay()
	Key(ctx context.Context, ref string) (ledger.Key, error)
	Keys(ctx context.Context, after int64, n int) ([]ledger.Key, error)
	Life(ctx context.Context, id ledger.MessageID) ([]ledger.Life, error)
	Minutes(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error)
	NewestGone(ctx context.Context) (ledger.MessageID, error)
	Note(ctx context.Context, c ledger.Change) error
	Operator(ctx context.Context) (ledger.Operator, error)
	PutSecret(ctx context.Context, name, value string, by ledger.Change) (made ledger.Secret, created bool, err error)
	RevokeAgentKey(ctx context.Context, agent, id int64, by ledger.Change) error
	RevokeKey(ctx context.Context, ref string, by ledger.Change) (ledger.Key, error)
	RevokeToken(ctx context.Context, channel, id int64, by ledger.Change) error
	RotateAgentKey(ctx context.Context, agent int64, t ledger.NewToken, until time.Time, by ledger.Change) (ledger.Token, error)
	RotateToken(ctx context.Context, channel int64, t ledger.NewToken, until time.Time, by ledger.Change) (ledger.Token, error)
	Search(ctx context.Context, f search.Find) (search.Found, error)
	Secrets(ctx context.Context, after int64, n int) ([]ledger.Secret, error)
	Sessions(ctx context.Context) ([]ledger.Session, error)
	Tokens(ctx context.Context, channel, after int64, n int) ([]ledger.Token, error)
	UpdateAgent(ctx context.Context, a ledger.Agent, by ledger.Change) (ledger.Agent, error)
}
