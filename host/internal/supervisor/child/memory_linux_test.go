package child

import (
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	goPath, pyPath := goProgram(t), python(t)
	py := func(mib string) []string {
		return []string{pyPath, "-c", "import sys, json, ssl, asyncio; print('ready', flush=True)\n" +
			"x = bytearray(int(sys.argv[1]) << 20); print('used', len(x) >> 20)", mib}
	}
	for name, test := range map[string]struct {
		path  string
		args  []string
		limit int64
		dies  bool
	}{
		"Go within":       {goPath, []string{"memory", "100"}, 256 << 20, false},
		"Go beyond":       {goPath, []string{"memory", "1024"}, 256 << 20, true},
		"Go far beyond":   {goPath, []string{"memory", "1024"}, 64 << 20, true},
		"Python within":   {pyPath, py("100"), 256 << 20, false},
		"Python beyond":   {pyPath, py("1024"), 64 << 20, true},
		"Python no limit": {pyPath, py("300"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spec{Path: test.path, Args: test.args, Dir: "/", Memory: test.limit, Name: newMark(t)}
			c := begin(t, s)
			out, errs := output(t, c)
			e := end(t, c)
			if !strings.HasPrefix(out, "ready\n") {
				t.Errorf("it did not come up: %+v %s", e, errs)
			}
			if died := e != (Exit{}); died != test.dies || strings.Contains(out, "used") == test.dies {
				t.Errorf("exit %+v, output %q, stderr %s", e, out, errs)
			}
			want, _ := Limiter()
			if test.limit == 0 {
				want = "none"
			}
			if c.Held.LimitBy != want {
				t.Errorf("limited by %s, want %s", c.Held.LimitBy, want)
			}
			t.Logf("limited by %s: exit %+v", c.Held.LimitBy, e)
		})
	}
}
