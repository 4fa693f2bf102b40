package config

import (
	"fmt"
	"slices"
)

// BuiltIn are the agents that every host has. Nobody can make, rename, change or
// delete them.
var BuiltIn = []string{"echo"}

// AgentNameRule says what an agent's name must be.
const AgentNameRule = NameRule + "; not none, nor that of a built-in agent"

// CheckAgentName checks the name of an agent that an operator makes.
func CheckAgentName(name string) error {
	if CheckName(name) != nil || name == "none" || slices.Contains(BuiltIn, name) {
		return fmt.Errorf("found %s, expected %s", quote(name), AgentNameRule)
	}
	return nil
}
