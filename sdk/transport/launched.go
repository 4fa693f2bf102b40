package transport

// What tells a program that a host has started it as a plugin (docs/plugins.md).
// The cookie is no secret.
const (
	CookieKey   = "PONTOON_PLUGIN"
	CookieValue = "4f9d1a62c7b84e0c8f53b7d6a01e2c95"
)

// ExitConfig is the exit status of a plugin that can't work with its
// configuration, EX_CONFIG of sysexits.h. Its last words say why.
const ExitConfig = 78

// Started reports whether a host has started this process as a plugin.
func Started(getenv func(string) string) bool { return getenv(CookieKey) == CookieValue }
