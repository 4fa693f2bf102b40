package webchat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// corpus is what runs where text becomes HTML, or an address is not looked at.
// Each would call alert, which the test hears.
var corpus = func() (texts []string) {
	b, err := os.ReadFile("../../../sdk/message/testdata/hostile.json")
	must(err)
	must(json.Unmarshal(b, &texts))
	return texts
}()

// poisoned is a message of every part there is, each of its texts being this one:
// names, statuses and addresses too, all but what says which part it is.
func poisoned(t *testing.T, text string) []message.Part {
	t.Helper()
	var all []any
	if err := json.Unmarshal(message.AppendParts(nil, everyPart("http://127.0.0.1")), &all); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(poison("", all, text))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := message.ParseParts(b)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func poison(key string, v any, text string) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = poison(key, value, text)
		}
	case []any:
		for i := range v {
			v[i] = poison(key, v[i], text)
		}
	case string:
		if key != "type" && v != message.PayloadCard && v != message.PayloadButtons {
			return text
		}
	}
	return v
}

func TestInjection(t *testing.T) {
	r := startRig(t, `,"title":"</title><script>alert(1)</script>"`)
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.says("hello")
	p.shows("echo: hello")
	to := sdk.Target{ConversationID: p.conversation()}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.adapter.SendImage(ctx, to, wire.Image{URL: "data:image/png;base64,bm9waWN0dXJl", Caption: corpus[0]})
	check(err)
	_, err = r.adapter.SendFile(ctx, to, wire.File{URL: "https://example.org/\"onclick=\"alert(1)", Filename: corpus[0], Caption: corpus[0]})
	check(err)
	for _, text := range corpus {
		_, err := r.adapter.Send(ctx, to, text)
		check(err)
		handle, err := r.adapter.SendButtons(ctx, to, text, [][]wire.Button{{{Text: text, Value: text, Style: text}}})
		check(err)
		_, err = r.adapter.SendCard(ctx, to, &wire.Card{Header: &wire.Header{Title: text, Color: text}, Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: text}, {Type: wire.ElementNote, Text: text},
			{Type: wire.ElementActions, Buttons: [][]wire.Button{{{Text: text, Value: text, Style: text}}}},
			{Type: wire.ElementListItem, Text: text, Button: &wire.Button{Text: text, Value: text}},
			{Type: wire.ElementSelect, Placeholder: text, InitValue: text, CallbackPrefix: text, Options: []wire.Option{{Text: text, Value: text}}},
			{Type: wire.ElementType(text), Text: text},
		}})
		check(err)
		_, err = r.adapter.Edit(ctx, to, handle.Handle, text)
		check(err)
		options := []message.UIOption{{Value: text, Label: text}}
		_, err = r.adapter.SendParts(ctx, to, text, []message.Part{message.NewForm(message.UIPart{UIID: text, Submit: &message.UISubmit{Label: text}, Components: []message.UIComponent{
			{Type: message.UIHeading, Text: text}, {Type: message.UIText, Text: text},
			{Type: message.UIInput, Name: "a" + text, Label: text, Placeholder: text, Default: []byte(quote(text))}, {Type: message.UITextarea, Name: text, Label: text},
			{Type: message.UISelect, Name: "b" + text, Label: text, Options: options}, {Type: message.UIRadio, Name: "c" + text, Label: text, Options: options},
			{Type: message.UICheckbox, Name: "d" + text, Label: text}, {Type: message.UICheckboxGroup, Name: "e" + text, Label: text, Options: options},
		}})})
		check(err)
		_, err = r.adapter.Stream(ctx, to, sdk.Draft{ID: text, Text: text})
		check(err)
		_, err = r.adapter.SendParts(ctx, to, text, poisoned(t, text))
		check(err)
		if _, err = r.adapter.SendParts(ctx, to, text, []message.Part{message.NewAudioOutput(message.AudioOutputPart{MimeType: text, URL: text})}); err == nil && !strings.HasPrefix(text, "https://") {
			t.Errorf("%q is taken for the address of a sound", text)
		}
	}
	p.is("all is shown", "document.querySelectorAll('#log form').length === %d && document.querySelectorAll('#log .card').length === %d && document.querySelectorAll('#log .order').length === %d",
		2*len(corpus), 4*len(corpus), len(corpus))
	p.is("signals are text as well", "document.querySelectorAll('#log .body > .hidden').length === %d", 2*len(corpus))
	p.js(nil, "[...document.querySelectorAll('#log form')].filter((_, i) => Number.isInteger(i / 5)).forEach(f => f.requestSubmit())") // as fast as a script, not as a person
	p.is("answers go under their names", "document.querySelectorAll('#log .mine.press').length > 10")
	name := absolute(t, "../../../host/internal/agent/assets/echo.png")
	evil := filepath.Join(t.TempDir(), "<img src=x onerror=alert(1)>.png")
	b, err := os.ReadFile(name)
	check(err)
	check(os.WriteFile(evil, b, 0o600))
	p.do(chromedp.SetUploadFiles("#files", []string{evil}, chromedp.ByQuery))
	p.is("the file is attached", "document.querySelector('#attached li:not(.busy)')?.innerText.includes('<img src=x')")
	p.do(chromedp.Focus("#text", chromedp.ByQuery))
	p.key("Enter")
	p.is("and shown", "document.querySelector('#log .own img')")
	p.shows(corpus[0])
	for _, text := range []string{corpus[0], corpus[5], corpus[6]} {
		p.says(text)
		p.shows("echo: " + text)
	}
	var strange []string
	p.js(&strange, `[...document.querySelectorAll('#log *')].filter(e =>
		!['ARTICLE', 'DIV', 'SPAN', 'P', 'A', 'BUTTON', 'SECTION', 'H2', 'HR', 'LABEL', 'SELECT', 'OPTION', 'STRONG', 'CODE', 'TIME', 'IMG', 'svg', 'path',
		 'UL', 'OL', 'LI', 'TABLE', 'CAPTION', 'THEAD', 'TBODY', 'TFOOT', 'TR', 'TH', 'TD', 'EM', 'DEL', 'BLOCKQUOTE', 'PRE', 'FORM', 'INPUT', 'TEXTAREA', 'FIELDSET', 'LEGEND', 'AUDIO'].includes(e.tagName) ||
		[...e.attributes].some(a => a.name.startsWith('on') || a.name === 'style' || a.name === 'srcdoc') ||
		e.tagName === 'A' && !/^(https?|mailto):/.test(e.href) || e.tagName === 'IMG' && !/^(https?:|data:image\/png)/.test(e.src)).map(e => e.outerHTML.slice(0, 120))`)
	if len(strange) > 0 {
		t.Errorf("the page holds %q", strange)
	}
	p.is("every link, followed by hand, stays outside", "[...document.querySelectorAll('#log a')].every(a => a.target === '_blank' && a.rel === 'noopener noreferrer')")
	p.is("text can't become HTML at all", "(() => { try { document.querySelector('#hint').innerHTML = 'x'; return false } catch { return true } })()")
	p.is("the title is text", "document.title.includes('<script>') && document.querySelectorAll('script').length === 1")
	p.quiet()
}
