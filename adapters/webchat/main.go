// Command pontoon-webchat serves a chat page and connects it to a Pontoon host.
package main

import (
	"github.com/pontoon-bridge/pontoon/adapters/webchat/webchat"
	"github.com/pontoon-bridge/pontoon/sdk/plugin"
)

func main() { plugin.Main("webchat", webchat.New()) }
