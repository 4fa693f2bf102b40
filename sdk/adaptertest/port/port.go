// Package port finds addresses for tests of what is told where to listen, or where
// nobody does.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports from which a system takes none by itself when a program asks for any: what is
// free there stays so.
const lowest, highest = 20_000, 32_000

// Free is an address of this machine on which nobody listens. Other tests take it
// neither for a server nor for a connection.
func Free(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest)) //nolint:gosec // no secret
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("found no free port")
	return ""
}
