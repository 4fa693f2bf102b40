package wire

// Profile is what a far end can show beyond its capabilities. Zero values mean
// "no limit known". An adapter of 1.1 says it at register; an operator sets it on
// the channel of a 1.0 adapter.
type Profile struct {
	MaxText        int    `json:"max_text,omitempty" doc:"Longest text of one message, in Unicode code points" minimum:"0" maximum:"1000000"`
	Markdown       string `json:"markdown,omitempty" doc:"Markdown dialect that the platform shows" enum:"none,basic,full"`
	MaxButtons     int    `json:"max_buttons,omitempty" doc:"Most buttons of one message" minimum:"0" maximum:"10000"`
	EditIntervalMS int    `json:"edit_interval_ms,omitempty" doc:"Shortest time between two edits of one message, in milliseconds" minimum:"0" maximum:"3600000"`
	Parallel       int    `json:"parallel,omitempty" doc:"Conversations that the adapter serves at once" minimum:"0" maximum:"100000"`
	InFlight       int    `json:"in_flight,omitempty" doc:"Unacknowledged messages of one conversation that the adapter keeps in order; an operator can make it fewer, and not more" minimum:"0" maximum:"64"`
}

// With is the profile with all that o says in its place.
func (p Profile) With(o Profile) Profile {
	set := func(dst *int, v int) {
		if v != 0 {
			*dst = v
		}
	}
	set(&p.MaxText, o.MaxText)
	set(&p.MaxButtons, o.MaxButtons)
	set(&p.EditIntervalMS, o.EditIntervalMS)
	set(&p.Parallel, o.Parallel)
	if o.InFlight > 0 { // the adapter alone knows how many it keeps in order
		p.InFlight = min(p.InFlight, o.InFlight)
	}
	if o.Markdown != "" {
		p.Markdown = o.Markdown
	}
	return p
}

// View is what a far end can be shown: its effective capabilities and profile.
type View struct {
	Protocol Protocol
	Caps     Caps
	Profile  Profile
	Local    bool // on this machine: paths of files mean something to it
}

var profileKeys = [...]string{"max_text", "markdown", "max_buttons", "edit_interval_ms", "parallel", "in_flight"}

// readProfile reads register's profile; its limits are those of the struct's tags.
func readProfile(raw string) (*Profile, *Error) {
	if raw[0] != '{' {
		return nil, errorf(CodeWrongType, "profile: found %s, expected an object", kindOf(raw))
	}
	var v [len(profileKeys)]string
	pick(raw, profileKeys[:], v[:])
	p := new(Profile)
	for _, n := range [...]struct {
		dst *int
		key int
		max int64
	}{
		{&p.MaxText, 0, 1_000_000}, {&p.MaxButtons, 2, 10_000}, {&p.EditIntervalMS, 3, 3_600_000}, {&p.Parallel, 4, 100_000}, {&p.InFlight, 5, 64},
	} {
		var value int64
		if err := readInt(&value, "profile.", profileKeys[n.key], v[n.key], n.max); err != nil {
			return nil, err
		}
		*n.dst = int(value)
	}
	if err := readText(&p.Markdown, "profile.", profileKeys[1], v[1], MaxFrame); err != nil {
		return nil, err
	}
	switch p.Markdown {
	case "", "none", "basic", "full":
		return p, nil
	}
	return nil, errorf(CodeWrongType, "profile.markdown: found %.64q, expected none, basic or full", p.Markdown)
}

func (p *Profile) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = intIf(dst, profileKeys[0], int64(p.MaxText))
	dst = fieldIf(dst, profileKeys[1], p.Markdown)
	dst = intIf(dst, profileKeys[2], int64(p.MaxButtons))
	dst = intIf(dst, profileKeys[3], int64(p.EditIntervalMS))
	dst = intIf(dst, profileKeys[4], int64(p.Parallel))
	dst = intIf(dst, profileKeys[5], int64(p.InFlight))
	return append(dst, '}')
}
