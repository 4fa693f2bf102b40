package hub

import "time"

// turns are the messages of a channel that its agents have not answered.
type turns struct {
	*locked

	parked    []parkedTurn               // left over from before a restart
	absent    map[*conversation]struct{} // those whose turns wait for their agent
	inLine    map[*conversation]struct{} // those whose next turn waits for a place
	gaveUp    time.Time                  // looked for turns that have waited for too long
	lastAgent *AgentTally                // of the last turn; nil = there was none
}
