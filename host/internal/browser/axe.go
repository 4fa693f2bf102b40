package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// shots names the directory for pictures.
const shots = "PONTOON_SHOTS"

// Axe is the text of axe-core, which the tests of a program bring along.
var Axe = func(t testing.TB) string {
	t.Fatal("browser.Axe is not set")
	return ""
}

// wide lists what is wider than the page, outside of boxes that scroll by themselves.
const wide = `[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 0 && !e.closest('.scroll, .hush, .skip, svg, pre, .log') &&
	e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 100)).slice(0, 5)
	.concat(document.documentElement.scrollWidth > document.documentElement.clientWidth ? ['the page scrolls sideways'] : [])`

// squeezed lists what is to be typed into or pressed and has no room for a word, and
// tables that are wider than a phone although their rows are cards there.
const squeezed = `[...document.querySelectorAll('main :is(input, select, textarea, button)')].filter(e => e.checkVisibility() && !e.matches('[type=checkbox], [type=radio]') &&
	e.getBoundingClientRect().width < 40).concat(innerWidth > 700 ? [] : [...document.querySelectorAll('.scroll:has(> table.stack)')].filter(e => e.scrollWidth > e.clientWidth))
	.map(e => e.outerHTML.slice(0, 100)).slice(0, 5)`

// Accessible fails the test for every serious finding of axe, and for what is
// wider than the page or too narrow to be used: at 360 points light and at 1440 dark; for who looks at
// pictures (see Shot) also the other way round.
func (p *Tab) Accessible(name string) {
	p.t.Helper()
	axe := Axe(p.t)
	for _, width := range []int64{360, 1440} {
		for _, dark := range []bool{false, true} {
			if dark != (width == 1440) && os.Getenv(shots) == "" {
				continue
			}
			p.View(width, 900, dark)
			scheme := map[bool]string{false: "light", true: "dark"}[dark]
			at := fmt.Sprintf("%s-%d-%s", name, width, scheme)
			var found, beyond, narrow []string
			p.JS(nil, "document.getAnimations().filter(a => isFinite(a.effect.getComputedTiming().endTime)).forEach(a => a.finish())")
			p.JS(&beyond, wide)
			p.JS(&narrow, squeezed)
			var there bool
			if p.JS(&there, "typeof axe === 'object'"); !there {
				p.JS(nil, axe+";0")
			}
			p.JS(&found, `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical')
				.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`)
			if len(found)+len(beyond)+len(narrow) > 0 {
				p.t.Errorf("%s: axe finds %s; wider than the page: %q; without room: %q", at, strings.Join(found, "\n\t"), beyond, narrow)
			}
			p.Shot(at)
		}
	}
	p.View(1440, 900, false)
}
