package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

// SearchResult is a message that was found.
type SearchResult struct {
	ChannelID string         `json:"channel_id"`
	Channel   string         `json:"channel"`
	Snippet   []SnippetPiece `json:"snippet" doc:"Where it says what was looked for, in pieces of plain text that follow one another"`
	Message   Message        `json:"message"`
}

// SnippetPiece is a piece of a snippet.
type SnippetPiece struct {
	Text  string `json:"text"`
	Match bool   `json:"match" doc:"What was looked for; else what is around it"`
}

// SearchResults is a page of what was found, newest first.
type SearchResults struct {
	Results    []SearchResult `json:"results"`
	NextCursor string         `json:"next_cursor,omitempty" doc:"Also with fewer results than the limit, if time was up: go on with it"`
	Partial    bool           `json:"partial" doc:"Time was up before the page was full"`
	Behind     int64          `json:"behind" doc:"Messages that no search finds yet, since the index does not have them; counted up to 100,000"`
}

// searchAgain is when it makes sense to repeat a search that took too long, since
// others searched.
const searchAgain = 2 * time.Second

func (s *server) search() {
	huma.Register(s.api, s.gives(opens(auth.ScopeRead, byChannel, operation("GET", "/search", "search-messages",
		"Messages with all the words, newest first. \"A phrase\", -not, from:NAME, channel:NAME, state:STATE, before:DAY, after:DAY (UTC); the last word may be a beginning", 200, 404, 422)), SearchResults{}), s.searchMessages)
}

func (s *server) searchMessages(ctx context.Context, in *struct {
	MessagePage
	Query   string `query:"q" required:"true" maxLength:"500" doc:"What to look for"`
	Channel string `query:"channel" maxLength:"64" doc:"Only in this channel"`
}) (*huma.StreamResponse, error) {
	q, err := search.Parse(in.Query)
	if err != nil {
		return nil, field(http.StatusUnprocessableEntity, "query.q", err.Error(), clip(in.Query))
	}
	before, err := in.after()
	if err != nil {
		return nil, err
	}
	f := search.Find{Query: q, Cursor: ledger.MessageID(before), N: in.Limit}
	if err := s.narrow(ctx, &f, in.Channel); err != nil {
		return nil, err
	}
	found, err := s.Store.Search(ctx, f)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, retryAfter(huma.Error503ServiceUnavailable("the search took too long: look for rarer words, or in one channel, or try again later"), searchAgain)
	}
	if err != nil {
		return nil, s.fault(err, "search")
	}
	list, next := found.Messages, found.Next
	partial := next != 0 && len(list) < in.Limit
	if n := ledger.Fitting(list, in.MaxBytes); n < len(list) {
		list, next, partial = list[:n], list[n-1].ID, false
	}
	page, err := s.Pages.OpenList(ctx, list)
	if err != nil {
		return nil, s.fault(err, "search")
	}
	names := s.channelNames()
	return s.shown(page, `{"results":[`, func(ctx context.Context, e *ledger.Entry) (any, error) {
		row, there, err := names.of(ctx, e.Channel)
		if err != nil || !there { // deleted, and about to be swept
			return nil, err
		}
		r := SearchResult{ChannelID: row.ID, Channel: row.Name, Message: s.showMessage(*e), Snippet: []SnippetPiece{}}
		for _, p := range q.Snippet(search.Text(e.Text, e.Parts)) {
			r.Snippet = append(r.Snippet, SnippetPiece{p.Text, p.Match})
		}
		return r, nil
	}, func(early ledger.MessageID) any {
		return searchTail{nextPage{cursorOf(cmp.Or(early, next))}, partial, found.Behind}
	}), nil
}

// searchTail is what follows the results.
type searchTail struct {
	nextPage
	Partial bool  `json:"partial"`
	Behind  int64 `json:"behind"`
}

// narrow says in which channels is looked: those that the caller may read, that
// are named apart, and that the query names.
func (s *server) narrow(ctx context.Context, f *search.Find, ref string) error {
	var err error
	if f.Channels, err = s.readable(ctx, ref); err != nil {
		return err
	}
	keys := func(names []string) ([]int64, error) {
		var out []int64
		for _, name := range names {
			one, err := s.readable(ctx, name)
			if err != nil {
				return nil, field(http.StatusUnprocessableEntity, "query.q", "channel: there is none with this name", clip(name))
			}
			out = append(out, one...)
		}
		return out, nil
	}
	if f.Except, err = keys(f.Query.Without.Channels); err != nil || len(f.Query.Channels) == 0 {
		return err
	}
	named, err := keys(f.Query.Channels)
	if err != nil {
		return err
	}
	f.Channels = both(f.Channels, named)
	return nil
}

// both are the channels of the second list that are in the first one; nil = all.
func both(may, named []int64) []int64 {
	if may == nil {
		return named
	}
	out := []int64{}
	for _, n := range named {
		for _, m := range may {
			if n == m {
				out = append(out, n)
			}
		}
	}
	return out
}
