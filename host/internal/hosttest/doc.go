// Package hosttest makes a host for a test: in the test's own process, on a real
// SQLite file, with a real socket where one is needed. It is imported by tests alone.
//
//	h := hosttest.Start(t)                       // a whole host; Open has no API and no socket
//	row := h.Channel("support", hosttest.WithQueue)
//	c := h.Attach(t, row, "card")                // an adapter on a WebSocket, which compares bytes
//	c.Send(hosttest.Say("c", "hello"))
//	c.Want(hosttest.Answer("c", "echo: hello"))
//	h.WantHistory(row, "in handled hello", "out sent echo: hello")
//
// What a test changes of the host it says by functions of Setup. Agents whose turns
// the test ends are in agents.go, clocks that the test sets in clock.go, and an
// operator's requests in rest.go. Host.Again starts the host anew on its data,
// Host.Killed does so on what a kill would leave.
//
// A test waits with package await, for a condition; it never sleeps.
package hosttest
