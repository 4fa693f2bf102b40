package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
)

func TestCLIErrors(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", "")
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{nope"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"errNoChannel":      {[]string{"channel", "show", "none"}, 1, "not found"},
		"errNoChannelJSON":  {[]string{"channel", "show", "none", "--json"}, 1, "not found"},
		"errOddChannel":     {[]string{"channel", "show", "a/b?c#d"}, 1, "not found"},
		"errTaken":          {[]string{"channel", "create", "c"}, 1, "taken"},
		"errName":           {[]string{"channel", "create", "Upper"}, 1, "a-z, 0-9"},
		"errEscapeInName":   {[]string{"channel", "create", "\x1b[31mred\nforged"}, 1, "a-z, 0-9"},
		"errKind":           {[]string{"channel", "create", "d", "--kind", "plugin"}, 1, "expected bridge"},
		"errAgent":          {[]string{"channel", "create", "d", "--agent", "nobody"}, 1, "echo"},
		"errCapability":     {[]string{"channel", "create", "d", "--accept", "text,telepathy"}, 2, "telepathy"},
		"errShortToken":     {[]string{"channel", "create", "d", "--token", "short"}, 1, "at least 16"},
		"errNotAttached":    {[]string{"send", "c", "room", "hello"}, 1, "adapter_not_attached"},
		"errNoConversation": {[]string{"channel", "test", "c"}, 1, "conversation"},
		"errNoToken":        {[]string{"token", "revoke", "c", "99"}, 1, "not found"},
		"errTokenForm":      {[]string{"token", "revoke", "c", "x"}, 1, "not found"},
		"errOverlap":        {[]string{"token", "rotate", "c", "--overlap", "soon"}, 2, "duration"},
		"errCardFile":       {[]string{"send", "c", "room", "--card", bad}, 1, "not valid JSON"},
		"errNoCardFile":     {[]string{"send", "c", "room", "--card", bad + ".no"}, 1, "no such file"},
		"errImagePath":      {[]string{"send", "c", "room", "--image", "/etc/passwd"}, 1, "found text/plain, expected a picture"},
		"errKey":            {[]string{"channel", "list", "--key", "pnk_thatisnotthekey"}, 1, "no valid key"},
		"errCommand":        {[]string{"chanel"}, 2, "chanel"},
		"errSubcommand":     {[]string{"channel", "destroy"}, 2, "destroy"},
		"errNoSubcommand":   {[]string{"channel"}, 2, "create"},
		"errNoArgument":     {[]string{"channel", "create"}, 2, "arg"},
		"errArguments":      {[]string{"channel", "list", "x"}, 2, "x"},
		"errFlag":           {[]string{"channel", "list", "--jsno"}, 2, "--jsno"},
		"errFlagValue":      {[]string{"messages", "c", "--limit", "many"}, 2, "--limit"},
		"errLimit":          {[]string{"messages", "c", "--limit", "501"}, 2, "1 to 500"},
		"errNoContent":      {[]string{"send", "c", "room"}, 2, "nothing to send"},
		"errNoAgent":        {[]string{"agent", "show", "nobody"}, 1, "not found"},
		"errAgentKind":      {[]string{"agent", "create", "a", "--kind", "martian"}, 1, "expected "},
		"errAgentName":      {[]string{"agent", "create", "none", "--kind", "echo"}, 1, "a-z, 0-9"},
		"errAgentConfig":    {[]string{"agent", "create", "a", "--kind", "echo", "--set", "colour=short"}, 1, "unknown field"},
		"errAgentFile":      {[]string{"agent", "create", "a", "--kind", "echo", "--config", bad}, 1, "no JSON object"},
		"errNoAgentFile":    {[]string{"agent", "create", "a", "--kind", "echo", "--config", bad + ".no"}, 1, "no such file"},
		"errAgentBuiltIn":   {[]string{"agent", "delete", "echo"}, 1, "built in"},
		"errAgentKey":       {[]string{"agent", "key", "rotate", "echo"}, 1, "no keys"},
		"errNoAgentKey":     {[]string{"agent", "key", "revoke", "echo", "1"}, 1, "not found"},
		"errNoKind":         {[]string{"agent", "create", "a"}, 2, "--kind"},
		"errAgentSet":       {[]string{"agent", "create", "a", "--kind", "echo", "--set", "short"}, 2, "KEY=VALUE"},
		"errAgentNoChange":  {[]string{"agent", "update", "echo"}, 2, "nothing to change"},
		"errNoAgentCommand": {[]string{"agent"}, 2, "create"},
		"errNoKeyCommand":   {[]string{"agent", "key"}, 2, "rotate"},
		"errNoChange":       {[]string{"channel", "update", "c"}, 2, "nothing to change"},
		"errQueueTTL":       {[]string{"channel", "update", "c", "--queue-ttl", "500ms"}, 2, "whole seconds"},
		"errQueueLength":    {[]string{"channel", "update", "c", "--queue-length", "-1"}, 2, "0 to 1000000"},
		"errNoScope":        {[]string{"key", "create", "viewer"}, 2, "--scope: found none"},
		"errScope":          {[]string{"key", "create", "viewer", "--scope", "all"}, 2, "agent:run"},
		"errKeyExpires":     {[]string{"key", "create", "viewer", "--scope", "read", "--expires", "soon"}, 2, "duration"},
		"errTokenExpires":   {[]string{"token", "rotate", "c", "--expires", "-1h"}, 2, "duration"},
		"errKeyExpiresDays": {[]string{"key", "create", "viewer", "--scope", "read", "--expires", "1.5d"}, 2, "such as 90m, 24h or 30d"},
		"errBool":           {[]string{"channel", "update", "c", "--queue=maybe"}, 2, `--queue: found "maybe", expected true or false`},
		"errNumber":         {[]string{"messages", "c", "--limit", "many"}, 2, `--limit: found "many", expected a whole number`},
		"errNoName":         {[]string{"channel", "update"}, 2, "found no argument, expected NAME"},
		"errNoQuery":        {[]string{"search", " "}, 2, "empty query"},
		"errFoundOnce":      {[]string{"why", "nope"}, 1, "23456789abcdefghjkmnpqrstvwxyz\n"},
		"errReason":         {[]string{"dead", "list", "--reason", "bored"}, 2, "unknown_outcome"},
		"errMarkdown":       {[]string{"render", "--markdown", "zz", bad}, 2, "none, basic or full"},
		"errMaxText":        {[]string{"render", "--max-text", "-1", bad}, 2, "--max-text"},
		"errWindow":         {[]string{"stats", "--window", "year"}, 2, "hour or day"},
		"errURL":            {[]string{"channel", "list", "--url", "localhost:8080"}, 2, "--url"},
		"errAdapter":        {[]string{"adapter", "run", "carrier-pigeon"}, 2, "irc"},
		"errNoAdapter":      {[]string{"adapter", "run"}, 2, "irc"},
		"errAdapterToken":   {[]string{"adapter", "run", "irc"}, 2, "PONTOON_TOKEN"},
		"errAdapterFlag":    {[]string{"adapter", "run", "irc", "--no"}, 2, "no"},
		"errAdapterConfig":  {[]string{"adapter", "run", "irc", "--token", "x", "--config", "{nope"}, 1, "configuration:1:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runCommand(t, h.env(), "", c.args...)
			if r.code != c.code || r.out != "" {
				t.Errorf("exit status %d, expected %d; stdout %q", r.code, c.code, r.out)
			}
			oneLine(t, r.err, c.want)
			if dirty(r.err) {
				t.Errorf("control characters reach the terminal: %q", r.err)
			}
			if strings.Contains(r.err, "short'") || strings.Contains(r.err, `"short"`) {
				t.Errorf("the token is echoed: %s", r.err)
			}
		})
	}
}

func TestCLINoHost(t *testing.T) {
	t.Parallel()
	url := "http://" + port.Free(t)
	for _, args := range [][]string{
		{"channel", "list"}, {"channel", "create", "c", "--json"}, {"channel", "delete", "c"}, {"token", "list", "c"}, {"send", "c", "room", "hi"},
		{"messages", "c", "--follow"}, {"adapters"}, {"capabilities", "--json"},
	} {
		r := runCommand(t, []string{"PONTOON_URL=" + url}, "", args...)
		if want := "pontoon: no host at " + url + " (start one: pontoon serve)\n"; r.code != 1 || r.out != "" || r.err != want {
			t.Errorf("%v: %+v, expected %q", args, r, want)
		}
	}
	// The flag wins over the variable.
	if r := runCommand(t, []string{"PONTOON_URL=http://127.0.0.1:1"}, "", "adapters", "--url", url+"/"); !strings.Contains(r.err, "no host at "+url+" ") {
		t.Errorf("--url: %+v", r)
	}
	// What answers is not always a host.
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	go func() {
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-\x1b[31mother\r\n"))
			_ = c.Close()
		}
	}()
	r := runCommand(t, []string{"PONTOON_URL=http://" + other.Addr().String()}, "", "channel", "list")
	if r.code != 1 || dirty(r.err) {
		t.Errorf("another service: %+v", r)
	}
	oneLine(t, r.err, "call host")
}

// A key that is refused is named by where it came from.
func TestCLIKeySource(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	url, dir := "PONTOON_URL="+h.url, t.TempDir()
	empty := []string{url, "PONTOON_DATA=" + dir}
	for name, c := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"errNoFile": {empty, nil, filepath.Join(dir, "admin.key") + " is not there"},
		"errFlag":   {empty, []string{"--key", "pnk_no"}, "the key of --key was used"},
		"errEnv":    {append(empty, "PONTOON_KEY=pnk_no"), nil, "the key of PONTOON_KEY was used"},
	} {
		r := runCommand(t, c.env, "", append([]string{"channel", "list"}, c.args...)...)
		if r.code != 1 || r.out != "" || strings.Contains(r.err, "pnk_no") {
			t.Errorf("%s: %+v", name, r)
		}
		oneLine(t, r.err, "no valid key")
		oneLine(t, r.err, c.want)
	}
}

// Limits of the queue that are not given stay as they are.
func TestCLIQueueLimits(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var shown struct {
		Limits struct {
			TTL      int `json:"ttl_seconds"`
			Length   int
			Attempts int
		} `json:"queue_limits"`
	}
	want := func(ttl, length, attempts int) {
		t.Helper()
		if l := shown.Limits; l.TTL != ttl || l.Length != length || l.Attempts != attempts {
			t.Errorf("limits %+v, expected %d, %d, %d", l, ttl, length, attempts)
		}
		shown.Limits.TTL, shown.Limits.Length, shown.Limits.Attempts = 0, 0, 0
	}
	h.json(&shown, "channel", "create", "c", "--queue", "--queue-length", "7")
	want(0, 7, 0)
	h.json(&shown, "channel", "update", "c", "--queue-attempts", "3")
	want(0, 7, 3)
	h.json(&shown, "channel", "update", "c", "--queue-ttl", "1h", "--queue-attempts", "0")
	want(3600, 7, 0)
	h.must(&shown, "PATCH", "/channels/c", `{"queue_limits":{"length":8}}`)
	want(3600, 8, 0)
}
