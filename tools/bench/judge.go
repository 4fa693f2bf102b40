package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

const integrityOK = "ok"

// KillReport is what a host owed to its clients after being killed, and what
// of that it had.
type KillReport struct {
	Machine
	Rounds   int `json:"rounds"`
	Kills    int `json:"kills"` // also those during a start
	Sent     int `json:"sent"`
	Answered int `json:"answered"` // acknowledged: the answer arrived
	// Unanswered were stored with their answer, which the kill kept from arriving.
	Unanswered int `json:"stored_unanswered"`

	Lost       int    `json:"lost"`         // answered, but question or answer is not stored
	Duplicated int    `json:"duplicated"`   // question or answer is stored, or was delivered, twice
	Torn       int    `json:"torn"`         // question without answer, the reverse, or with other content
	Gaps       int    `json:"gaps"`         // not stored, though a later one of the connection is
	Disordered int    `json:"out_of_order"` // stored, or answered, after a later one of the conversation
	Foreign    int    `json:"foreign"`      // stored or answered, but never sent
	Integrity  string `json:"integrity_check"`
}

// OK reports whether nothing that was acknowledged was lost or changed.
func (r *KillReport) OK() bool { return r.clean() && r.Answered > 0 && r.Integrity == integrityOK }

// clean reports whether nothing wrong was found so far.
func (r *KillReport) clean() bool {
	return r.Lost+r.Duplicated+r.Torn+r.Gaps+r.Disordered+r.Foreign == 0 && (r.Integrity == "" || r.Integrity == integrityOK)
}

// history is a channel's messages, newest first.
type history []entry

// pair is what history holds of one message.
type pair struct {
	questions, answers int
	question           string // id
	repliesTo          string
	wrong              bool // other text than what was sent
}

// judge compares one connection's log with its channel's history.
func (r *KillReport) judge(p *peer, log history) {
	r.Sent += p.sent
	r.Answered += p.answered
	r.Duplicated += p.duplicated
	r.Disordered += p.disordered
	r.Foreign += p.stray
	stored := r.pairs(p, log)
	last := -1
	for seq, s := range stored {
		if s.questions > 0 {
			last = seq
		}
	}
	for seq, s := range stored {
		switch {
		case s.questions > 1 || s.answers > 1:
			r.Duplicated++
		case p.has(seq) && (s.questions == 0 || s.answers == 0):
			r.Lost++
		case s.questions == 0 && s.answers == 0:
			if seq < last {
				r.Gaps++
			}
		case s.questions != s.answers || s.repliesTo != s.question || s.wrong:
			r.Torn++
		case !p.has(seq):
			r.Unanswered++
		}
	}
}

// pairs sorts history by what was sent.
func (r *KillReport) pairs(p *peer, log history) []pair {
	stored := make([]pair, p.sent)
	newest := make([]int, p.conversations) // seen last in each conversation, walking back
	for i := range newest {
		newest[i] = p.sent
	}
	for _, e := range log {
		var id string
		seq, ok := 0, json.Unmarshal(e.ReplyCtx, &id) == nil
		if ok {
			seq, ok = p.sequence([]byte(id))
		}
		if !ok || seq >= p.sent {
			r.Foreign++
			continue
		}
		s := &stored[seq]
		if e.Direction == "out" {
			s.answers++
			s.repliesTo = e.ReplyTo
			s.wrong = s.wrong || e.Text != "echo: "+p.textOf(seq)
			continue
		}
		s.questions++
		s.question = e.ID
		s.wrong = s.wrong || e.Text != p.textOf(seq)
		if conv := seq % p.conversations; seq > newest[conv] {
			r.Disordered++
		} else {
			newest[conv] = seq
		}
	}
	return stored
}

// Print writes the report for people.
func (r *KillReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d rounds, %d kills\n\n", r.Machine, r.Rounds, r.Kills)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, line := range []struct {
		name string
		n    int
	}{
		{"sent", r.Sent}, {"answered", r.Answered}, {"stored, answer cut off", r.Unanswered}, {"answered and lost", r.Lost}, {"duplicated", r.Duplicated},
		{"torn pairs", r.Torn}, {"gaps", r.Gaps}, {"out of order", r.Disordered}, {"never sent", r.Foreign},
	} {
		fmt.Fprintf(tab, "%s\t%s\n", line.name, Number(float64(line.n), 0))
	}
	fmt.Fprintf(tab, "integrity_check\t%s\n", r.Integrity)
	if !r.OK() {
		fmt.Fprintf(tab, "\nNOT OK: the data is kept in %s\n", r.Data)
	}
	return tab.Flush()
}
