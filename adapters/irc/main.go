// Command pontoon-irc connects one IRC network to a Pontoon host.
package main

import (
	"github.com/pontoon-bridge/pontoon/adapters/irc/irc"
	"github.com/pontoon-bridge/pontoon/sdk/plugin"
)

func main() { plugin.Main("irc", irc.New()) }
