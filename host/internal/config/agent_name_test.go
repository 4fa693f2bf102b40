package config

import "testing"

func TestCheckAgentName(t *testing.T) {
	for name, ok := range map[string]bool{
		"helper": true, "a.b-c_9": true, "": false, "Helper": false, "-x": false, "none": false, "echo": false, "bridge": false,
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8": false,
	} {
		if err := CheckAgentName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
