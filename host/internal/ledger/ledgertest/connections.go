package ledgertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// connections: the history of connections keeps the order, counts refusals that are alike
// once, and of each owner the newest.
func connections(b *bed) {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	at := func(of ledger.Owner, what ledger.Meeting, after time.Duration, why string) ledger.Connection {
		return ledger.Connection{Owner: of, What: what, At: start.Add(after), Latest: start.Add(after), Count: 1, Remote: "127.0.0.1", Credential: 3, Code: 4001, Why: why}
	}
	add := func(lines ...ledger.Connection) {
		b.Helper()
		if err := b.AddConnections(b.Context(), lines); err != nil {
			b.Fatal(err)
		}
	}
	one, two := ledger.OfChannel(1), ledger.OfAgent(1)
	add(at(one, ledger.Attached, 0, ""), at(one, ledger.Left, time.Second, "gone"), at(one, ledger.Attached, 2*time.Second, ""), at(two, ledger.Turned, 3*time.Second, "no"))
	add(at(one, ledger.Turned, 4*time.Second, "no"), at(two, ledger.Turned, 5*time.Second, "no"), at(one, ledger.Turned, 6*time.Second, "other"))
	add(at(two, ledger.Turned, 2*time.Hour, "no"))
	read := func(want ledger.ConnectionQuery, before int64, n int) []ledger.Connection {
		b.Helper()
		page, err := b.Connections(b.Context(), want, before, n)
		if err != nil {
			b.Fatal(err)
		}
		return page
	}
	shown := func(page []ledger.Connection) (out []string) {
		for _, c := range page {
			out = append(out, fmt.Sprintf("%s %d %s %s %d %v", c.Owner.Kind, c.Owner.Key, c.What, c.Why, c.Count, c.Latest.Sub(start)))
		}
		return out
	}
	all := []string{
		"agent_key 1 refused no 1 2h0m0s", "channel_token 1 refused other 1 6s", "channel_token 1 refused no 1 4s", "agent_key 1 refused no 2 5s",
		"channel_token 1 attached  1 2s", "channel_token 1 left gone 1 1s", "channel_token 1 attached  1 0s",
	}
	b.reopened()
	page := read(ledger.ConnectionQuery{}, 0, 100)
	b.want("all", shown(page), all)
	b.want("all behind the third", shown(read(ledger.ConnectionQuery{}, page[2].ID, 100)), all[3:])
	left := ledger.Left
	b.want("of one that left", shown(read(ledger.ConnectionQuery{Owner: one, What: &left}, 0, 100)), []string{all[5]})
	if c := page[0]; c.Remote != "127.0.0.1" || c.Credential != 3 || c.Code != 4001 || !c.At.Equal(start.Add(2*time.Hour)) {
		b.Errorf("kept %+v", c)
	}
	for i := range 3 { // more than are kept
		var many []ledger.Connection
		for j := range ledger.MaxConnections / 2 {
			many = append(many, at(one, ledger.Left, time.Duration(i*1000+j)*time.Second, fmt.Sprint(i*1000+j)))
		}
		add(many...)
	}
	page = read(ledger.ConnectionQuery{Owner: one}, 0, 2*ledger.MaxConnections)
	b.want("how many are kept", []string{fmt.Sprint(len(page)), page[0].Why}, []string{fmt.Sprint(ledger.MaxConnections), "2499"})
	b.want("of the other", shown(read(ledger.ConnectionQuery{Owner: two}, 0, 10)), slices.Concat(all[:1], all[3:4]))
}
