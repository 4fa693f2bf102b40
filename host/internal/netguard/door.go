package netguard

import "time"

// Door is where a credential is shown. Each counts for itself.
type Door uint8

const (
	Tokens    Door = iota // of channels
	AgentKeys             // of agents
	Keys                  // of the API
	Browsers              // tokens of Bridle's browsers
	Cookies               // of sessions
	Links                 // that set the operator up
	Passwords             // of the operator: see Attempt
	doors                 // how many there are
)

// rule is how guessing at a door is slowed down.
type rule struct {
	each  toll    // of an address
	all   toll    // of all addresses together, since many may take part
	alarm float64 // the failures that an address has once those of all are used up; 0 = none: it waits with all, unless somebody was let in there
	local float64 // this machine's own addresses have so many times as many, since many clients may sit behind a proxy that nobody named
}

// secrets is for what has 142 random bits, or 16 characters that an operator
// brought: thirty a minute never find it. A program that was given a wrong one
// repeats it, which is no guess (see Failed).
var secrets = rule{
	each:  toll{free: 30, pause: 2 * time.Second},
	all:   toll{free: 1000, pause: 100 * time.Millisecond},
	alarm: 3,
	local: 10,
}

// rules are those of all doors. People choose passwords, so that a few guesses may
// find one. Everybody can make their operator wait by guessing from many addresses:
// therefore all together wait for less long than one does.
var rules = [doors]rule{
	Tokens: secrets, AgentKeys: secrets, Keys: secrets, Browsers: secrets, Cookies: secrets, Links: secrets,
	Passwords: {
		each:  toll{free: 5, pause: time.Second, most: 15 * time.Minute},
		all:   toll{free: 20, pause: time.Second, most: 30 * time.Second},
		local: 1,
	},
}
