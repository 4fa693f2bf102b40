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
	APIKeyByRef(ctx context.Context, ref string) (ledger.Credential, error)
	CreateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, by ledger.Change) (ledger.Credential, error)
	RotateCredential(ctx context.Context, of ledger.Owner, n ledger.NewCredential, until time.Time, by ledger.Change) (ledger.Credential, error)
	RevokeCredential(ctx context.Context, of ledger.Owner, id int64, by ledger.Change) error
	Credentials(ctx context.Context, of ledger.Owner, after int64, n int) ([]ledger.Credential, error)
	ledger.Reader
	ledger.Directory
	Agent(ctx context.Context, ref string) (ledger.Agent, error)
	AgentByKey(ctx context.Context, key int64) (ledger.Agent, error)
	Agents(ctx context.Context, after int64, n int) ([]ledger.Agent, error)
	Audit(ctx context.Context, want ledger.AuditQuery, before int64, n int) ([]ledger.Change, error)
	AuditAfter(ctx context.Context, want ledger.AuditQuery, after int64, n int) ([]ledger.Change, error)
	ChannelsByAgent(ctx context.Context) (map[string]int, error)
	ChangesSince(ctx context.Context, subject string, version int64, n int) ([]ledger.Change, error)
	ChangedSince(ctx context.Context, last ledger.MessageID, n int) ([]ledger.Heading, error)
	Connections(ctx context.Context, want ledger.ConnectionQuery, before int64, n int) ([]ledger.Connection, error)
	Conversations(ctx context.Context, channels []int64, before ledger.MessageID, n int) ([]ledger.ConversationInfo, error)
	CountDead(ctx context.Context) (ledger.DeadCounts, error)
	CreateAgent(ctx context.Context, a ledger.Agent, key *ledger.NewCredential, by ledger.Change) (ledger.Agent, error)
	Dead(ctx context.Context, channel int64, why ledger.Reason, behind ledger.Death, n int) ([]ledger.DeadHeading, error)
	DeleteAgent(ctx context.Context, a ledger.Agent, by ledger.Change) error
	DeleteSecret(ctx context.Context, name string, by ledger.Change) error
	DeleteSession(ctx context.Context, id int64, by ledger.Change) error
	DeleteSessions(ctx context.Context, by ledger.Change) (ended int, err error)
	Ends(ctx context.Context, channel int64) (ledger.Ends, error)
	Doors(ctx context.Context, channel int64) (map[int64]ledger.Door, error)
	GiveWay()
	Life(ctx context.Context, id ledger.MessageID) ([]ledger.Life, error)
	Minutes(ctx context.Context, channel int64, first, past time.Time) ([]tally.Minute, error)
	NewestGone(ctx context.Context) (ledger.MessageID, error)
	Note(ctx context.Context, c ledger.Change) error
	Operator(ctx context.Context) (ledger.Operator, error)
	PutSecret(ctx context.Context, name, value string, by ledger.Change) (made ledger.Secret, created bool, err error)
	Search(ctx context.Context, f search.Find) (search.Found, error)
	Secrets(ctx context.Context, after int64, n int) ([]ledger.Secret, error)
	Sessions(ctx context.Context) ([]ledger.Session, error)
	UpdateAgent(ctx context.Context, a ledger.Agent, by ledger.Change) (ledger.Agent, error)
}
