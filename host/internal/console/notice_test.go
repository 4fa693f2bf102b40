package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNotice: a notice is for the next page, once, and a piece of a page that is
// asked for meanwhile does not take it away.
func TestNotice(t *testing.T) {
	for _, text := range []string{"done: „żółć“", strings.Repeat("ż", maxNotice)} {
		w := httptest.NewRecorder()
		giveNotice(w, httptest.NewRequest("POST", Path, nil), text)
		given := w.Result().Cookies()[0]
		ask := func(headers ...string) (said string, gone bool) {
			r, w := httptest.NewRequest("GET", Path, nil), httptest.NewRecorder()
			r.AddCookie(given)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			said = takeNotice(w, r)
			for _, c := range w.Result().Cookies() {
				gone = gone || c.Name == noticeCookie && c.MaxAge < 0
			}
			return said, gone
		}
		if said, gone := ask("HX-Request", "true"); said != "" || gone {
			t.Errorf("a piece takes %q, %v", said, gone)
		}
		for _, headers := range [][]string{nil, {"HX-Request", "true", "HX-Boosted", "true"}} {
			if said, gone := ask(headers...); !strings.HasPrefix(text, said) || len(said) < len("done") || !gone {
				t.Errorf("a page takes %q, %v", said, gone)
			}
		}
	}
	r := httptest.NewRequest("GET", Path, nil)
	r.AddCookie(&http.Cookie{Name: noticeCookie, Value: "!"})
	if said := takeNotice(httptest.NewRecorder(), r); said != "" {
		t.Errorf("of no notice: %q", said)
	}
}
