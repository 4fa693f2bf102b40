package irctest_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestServer(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	alice, bob := srv.Dial(t, "alice"), srv.Dial(t, "bob")
	alice.Join("#ops")
	bob.Join("#ops")
	alice.ExpectJoin("bob", "#ops")
	alice.Say("#ops", "hello")
	bob.Expect(":alice!", " PRIVMSG #ops :hello")

	srv.Restart(t)
	srv.Dial(t, "alice").Join("#ops")
}
