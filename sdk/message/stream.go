package message

// Merge adds parts to those of a message that is still being made: one with the
// id of an earlier part replaces it, a transcript replaces the interim one of
// the same speech, and the rest is appended. have may be changed.
func Merge(have []Part, next ...Part) []Part {
	for _, p := range next {
		if i := replaced(have, p); i >= 0 {
			have[i] = keepID(have[i], p)
			continue
		}
		have = append(have, p)
	}
	return have
}

// replaced is the place of the part that p replaces; -1 = none. Pieces of text
// are never replaced: they add up.
func replaced(have []Part, p Part) int {
	if p.Type == TypeTextDelta {
		return -1
	}
	id := p.id()
	for i := len(have) - 1; i >= 0; i-- {
		if id != "" && have[i].Type == p.Type && have[i].id() == id {
			return i
		}
	}
	final, err := As[TranscriptPart](p)
	if err != nil || id != "" {
		return -1
	}
	for i := len(have) - 1; i >= 0; i-- {
		t, err := As[TranscriptPart](have[i])
		if err == nil && t.Interim && t.Role == final.Role && t.AudioRefID == final.AudioRefID {
			return i
		}
	}
	return -1
}

// keepID gives p the id of the part that it replaces, if it has none.
func keepID(old, p Part) Part {
	if id := old.id(); id != "" && p.id() == "" {
		return p.with("id", id)
	}
	return p
}

// Complete makes text of the pieces of text, each at the place of its first:
// those with the same id belong together, and those without one that follow
// each other. It is the end of a message that was streamed.
func Complete(parts []Part) []Part {
	out := make([]Part, 0, len(parts))
	var texts []string       // what has come of each text
	var places []int         // where it goes
	byID := map[string]int{} // its index, by id; "" = the run that goes on
	for _, p := range parts {
		d, err := As[TextDeltaPart](p)
		if err != nil {
			delete(byID, "")
			out = append(out, p)
			continue
		}
		n, ok := byID[d.ID]
		if !ok {
			n = len(texts)
			byID[d.ID] = n
			texts, places = append(texts, ""), append(places, len(out))
			out = append(out, p)
		}
		texts[n] += d.Delta
	}
	for n, at := range places {
		out[at] = Of(TextPart{Base{out[at].id()}, texts[n]})
	}
	return out
}
