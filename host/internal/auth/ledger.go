package auth

import (
	"context"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Ledger is where credentials are kept.
type Ledger interface {
	CredentialByHash(ctx context.Context, kind ledger.CredentialKind, hash []byte) (ledger.Credential, error)
	APIKeyByRef(ctx context.Context, ref string) (ledger.Credential, error)
	AgentByKey(ctx context.Context, key int64) (ledger.Agent, error)
	ChannelByKey(ctx context.Context, key int64) (ledger.Channel, error)
	CreateSession(ctx context.Context, n ledger.Session, idle time.Time, by ledger.Change) (made ledger.Session, ended []int64, err error)
	Note(ctx context.Context, c ledger.Change) error
	Operator(ctx context.Context) (ledger.Operator, error)
	RenameOperator(ctx context.Context, name string, by ledger.Change) error
	SessionByHash(ctx context.Context, hash []byte) (ledger.Session, error)
	SessionByID(ctx context.Context, id int64) (ledger.Session, error)
	SetOperator(ctx context.Context, name, password string, by ledger.Change) error
	SetPassword(ctx context.Context, was, password string, keep int64, by ledger.Change) error
	Touch(ctx context.Context, u ledger.Uses) error
}
