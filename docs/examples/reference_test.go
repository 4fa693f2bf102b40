package examples_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The reference adapter in Python, with the one package that it needs.
func TestReferenceAdapter(t *testing.T) {
	t.Parallel()
	linesOf(t, "reference_adapter.py", 80)
	venv := filepath.Join(t.TempDir(), "venv")
	python := filepath.Join(venv, "bin", "python")
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "websockets==15.0.1"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("this test needs python3 with venv and pip, and a package index: %v: %v\n%s", args, err, out)
		}
	}
	env := startHost(t)
	p := start(t, env, python, "reference_adapter.py")
	p.types("hello")
	p.prints("echo: hello")
	p.types("ünïcödé 🌉")
	p.prints("echo: ünïcödé 🌉")
	p.types("!card")
	p.prints("Every element\n**Markdown** with a [link](https://example.org/)\n──────────\n[#1 Help] [#2 Say no]\nA list item [#3 Open]\n" +
		"Choose a colour [#4 Red] [#5 Blue]\nA note")
	p.types("#5")
	p.prints("echo: colour:blue")
	p.types("!buttons")
	p.prints("Pick one: [#1 Yes] [#2 No] [#3 Help]")
	p.types("#1")
	p.prints("echo: yes")
	p.types("!update")
	p.prints("echo: first version\n(edited)\necho: second version")
	p.types("last words") // answered although the input ends behind it
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	p.prints("echo: last words")
	p.ends(0)
	if p.errs.String() != "" {
		t.Errorf("stderr: %s", p.errs.String())
	}

	refused := start(t, []string{env[0], "PONTOON_TOKEN=pnt_thatisnotatoken"}, python, "-c", `
import runpy, sys
try:
    runpy.run_path("reference_adapter.py")
except SystemExit as e:
    print(e)
`)
	refused.prints("the host refused this adapter: invalid token")
	refused.ends(0)
}
