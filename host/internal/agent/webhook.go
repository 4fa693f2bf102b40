package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pontoon-bridge/pontoon/host/internal/compose"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Limits of webhooks.
const (
	maxSecrets     = 4
	maxAnswer      = 4 << 20 // bytes of a reply
	maxAnswers     = 100     // messages in one
	webhookTimeout = 30 * time.Second
	webhookTries   = 5
)

// WebhookConfig is the config of an agent of kind webhook.
type WebhookConfig struct {
	Remote
	Secret   string   `json:"secret,omitempty"`
	Secrets  []string `json:"secrets,omitempty"`  // further ones, while a secret is changed
	Timeout  Period   `json:"timeout,omitempty"`  // of one attempt
	Attempts uint     `json:"attempts,omitempty"` // of one turn
}

// WebhookFields describe WebhookConfig.
var WebhookFields = []Field{
	urlField,
	{"secret", "secret", false, "Signs each call, by Standard Webhooks; without one, the host makes it and shows it once"},
	{"secrets", "secrets", false, "Further secrets that sign as well, while one is changed"},
	headersField,
	{"timeout", "duration", false, "Of one attempt, 1s to 5m; 30s unless said otherwise"},
	{"attempts", "number", false, "Of one turn; 5 unless said otherwise. A turn that none of them answered in time fails"},
	turnsField,
	privateField,
}

// secretPrefix is how the secrets of Standard Webhooks begin.
const secretPrefix = "whsec_"

// NewWebhookSecret makes a secret of Standard Webhooks.
func NewWebhookSecret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// FillWebhook is Kind.Fill of webhooks: one without a secret gets one.
func FillWebhook(config json.RawMessage) (filled json.RawMessage, secret string) {
	fields, err := object(config)
	if err != nil || fields["secret"] != nil || fields["secrets"] != nil {
		return config, ""
	}
	secret = NewWebhookSecret()
	fields["secret"] = json.RawMessage(strconv.Quote(secret)) // base64 has nothing that JSON writes another way
	return encode(fields), secret
}

// CheckWebhook is Kind.Check of webhooks.
func CheckWebhook(config json.RawMessage) error {
	_, err := readWebhook(config)
	return err
}

func readWebhook(config json.RawMessage) (WebhookConfig, error) {
	var c WebhookConfig
	if err := Decode(config, &c); err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, err
	}
	all := c.secrets()
	if len(all) == 0 || len(all) > maxSecrets {
		return c, fmt.Errorf("secret: found %d with those in secrets, expected 1 to %d", len(all), maxSecrets)
	}
	for _, s := range all {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, secretPrefix))
		if !strings.HasPrefix(s, secretPrefix) || err != nil || len(key) < 24 || len(key) > 64 {
			return c, fmt.Errorf("secret: expected each to be %s and 24 to 64 bytes in base64", secretPrefix)
		}
	}
	if c.Attempts > 10 {
		return c, fmt.Errorf("attempts: found %d, expected 1 to 10", c.Attempts)
	}
	return c, c.Timeout.within("timeout", time.Second, 5*time.Minute)
}

func (c *WebhookConfig) secrets() []string {
	if c.Secret == "" {
		return c.Secrets
	}
	return append([]string{c.Secret}, c.Secrets...)
}

// Webhook is an agent behind a url: each turn is a signed POST, and what answers
// it may hold the reply.
type Webhook struct {
	*remote
	signers []*standardwebhooks.Webhook
	timeout time.Duration
	now     func() time.Time
}

var (
	_ hub.Agent   = (*Webhook)(nil)
	_ hub.Limited = (*Webhook)(nil)
	_ io.Closer   = (*Webhook)(nil)
)

// NewWebhook makes the agent of a config. Close must be called.
func NewWebhook(config json.RawMessage, o safehttp.Options) (*Webhook, error) {
	c, err := readWebhook(config)
	if err != nil {
		return nil, err
	}
	tries := c.Attempts
	if tries == 0 {
		tries = webhookTries
	}
	w := &Webhook{remote: newRemote(c.Remote, o, tries), timeout: c.Timeout.or(webhookTimeout), now: time.Now}
	for _, s := range c.secrets() {
		signer, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			return nil, errors.New("secret: expected base64") // its own error may show it
		}
		w.signers = append(w.signers, signer)
	}
	return w, nil
}

// Handle implements hub.Agent.
func (w *Webhook) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	frame := turnFrame(&t)
	body := (&agentwire.FromHost{Type: agentwire.TypeTurn, Turn: frame}).Append(nil)
	raw, err := try(ctx, w.remote, &t, func() ([]byte, error) { return w.ask(ctx, frame.TurnID, body) })
	if err != nil {
		return w.secrets.of(fmt.Errorf("webhook: %w", err))
	}
	answers, err := readAnswers(raw, t.Conversation)
	if err != nil {
		return w.secrets.of(fmt.Errorf("webhook: %w", &answerError{hub.Quote(err)}))
	}
	for i, a := range answers {
		if err := a.send(ctx, &t, r, i == len(answers)-1); err != nil {
			if errors.Is(err, hub.ErrContent) {
				err = hub.Quote(err)
			}
			return w.secrets.of(fmt.Errorf("webhook: answer %d of %d: %w", i+1, len(answers), err))
		}
	}
	return nil
}

// ask makes one attempt, within its time.
func (w *Webhook) ask(ctx context.Context, id string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	header, err := w.sign(id, body)
	if err != nil {
		return nil, &answerError{err}
	}
	header.Set("Accept", "application/json")
	resp, err := w.post(ctx, bytes.NewReader(body), header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswer))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &answerError{fmt.Errorf("found more than %d bytes, which is the limit", maxAnswer)}
	}
	return raw, err
}

// sign makes the headers of Standard Webhooks. The id is that of the turn, also
// when it is sent again, so that the agent can tell.
func (w *Webhook) sign(id string, body []byte) (http.Header, error) {
	now := w.now()
	var signatures []string
	for _, s := range w.signers {
		signature, err := s.Sign(id, now, body)
		if err != nil {
			return nil, errors.New("the request can't be signed")
		}
		signatures = append(signatures, signature)
	}
	return http.Header{
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookID):        {id},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookTimestamp): {strconv.FormatInt(now.Unix(), 10)},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature): {strings.Join(signatures, " ")},
	}, nil
}

// answerBody is one message of a reply: what REST takes at POST messages.
type answerBody struct {
	ConversationID *string `json:"conversation_id"`
	compose.Body
}

// answer is one of a reply that was checked.
type answer struct {
	message *message.Message
	update  *compose.Update
	typing  *bool
}

// readAnswers reads a reply to a turn of the conversation: nothing, a body, or a
// list of them. All of it is checked before any of it is sent.
func readAnswers(raw []byte, conversation string) ([]answer, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	bodies, at := make([]answerBody, 1), func(int) string { return "" }
	var err error
	switch raw[0] {
	case '[':
		at = func(i int) string { return fmt.Sprintf("[%d]: ", i) }
		err = Decode(raw, &bodies)
	case '{':
		err = Decode(raw, &bodies[0])
	default:
		return nil, fmt.Errorf("found %.20q, expected a JSON object or a list of them (202 or 204 = no answer now)", raw)
	}
	if err != nil {
		return nil, err
	}
	if len(bodies) > maxAnswers {
		return nil, fmt.Errorf("found %d messages, expected at most %d", len(bodies), maxAnswers)
	}
	out := make([]answer, len(bodies))
	for i := range bodies {
		if out[i], err = bodies[i].read(conversation); err != nil {
			return nil, fmt.Errorf("%s%w", at(i), err)
		}
	}
	return out, nil
}

// read checks one body.
func (b *answerBody) read(conversation string) (answer, error) {
	a := answer{update: b.Update, typing: b.Typing}
	if b.ConversationID != nil && *b.ConversationID != conversation {
		return a, errors.New("conversation_id: found another one than the turn's, expected that or none: others are reached by REST")
	}
	if b.OnlyTyping() {
		return a, nil
	}
	if paths := b.Paths(); len(paths) > 0 {
		return a, fmt.Errorf("%s: found a path of the host's machine, expected a url", paths[0].At)
	}
	if b.Update != nil {
		if err := b.Update.Check(); err != nil {
			return a, err
		}
	}
	m, err := b.Message()
	if err != nil {
		return a, err
	}
	a.message = &m
	return a, nil
}

// send sends the answer to the turn's conversation; the last one ends the turn when it
// is stored.
func (a *answer) send(ctx context.Context, t *hub.Turn, r hub.Reply, last bool) error {
	if a.typing != nil {
		r.Typing(*a.typing)
	}
	if a.message == nil {
		return nil
	}
	if a.update != nil {
		handle := a.update.PreviewHandle
		if handle == "" {
			var err error
			if handle, err = t.Handle(ctx, a.update.MessageID); errors.Is(err, ledger.ErrNotFound) {
				return errors.New("update.message_id: no such message in this channel")
			} else if err != nil {
				return err
			}
		}
		a.update.Mark(a.message, handle)
	}
	if last {
		return r.Last(ctx, *a.message, nil)
	}
	_, err := r.Send(ctx, *a.message)
	return err
}
