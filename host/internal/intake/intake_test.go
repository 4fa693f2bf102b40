package intake

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// How much there is in JSON is seen without decoding it, whatever its texts hold.
func TestMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want extent
	}{
		"okNothing": {"", extent{1, 0}}, "okText": {`"a,[{"`, extent{1, 0}}, "okQuote": {`"\",[\\\",",1`, extent{2, 0}}, "okBackslash": {`["\\",1]`, extent{3, 1}},
		"okObject": {`{"a":[1,{}],"b":2}`, extent{6, 3}}, "okOpen": {`["a`, extent{2, 1}}, "okEscape": {`"\`, extent{1, 0}},
		"tooDeep": {strings.Repeat("[", 500_000), extent{MaxDepth + 2, MaxDepth + 1}},
		"tooMany": {"[" + strings.Repeat("0,", 1000), extent{101, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := measure([]byte(c.raw), 100); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	raw := []byte(`{"a":"` + strings.Repeat(`\"x`, 1000) + `"}`)
	if n := testing.AllocsPerRun(10, func() { measure(raw, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What would be stored as other characters than came is refused with its place.
func TestCheckText(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":"é😀\ud83d\ude00\\ud800"}`: "", `"\u00e9\n\""`: "", `"\\`: "", `"\u12`: "", `"\uZZZZ"`: "", ``: "",
		"{\"a\":\"x\xff\"}": "at byte 7", "\xc3": "at byte 0", "\"\xed\xa0\x80\"": "at byte 1",
		`{"a":"\ud800"}`: `\ud800 at byte 6`, `"\uDC00"`: `\uDC00 at byte 1`, `"\ud800\ud800"`: "at byte 1", `"\ud800x"`: "at byte 1", `"\ud83d\ude00\ud83d"`: "at byte 13", `{"\udfff":1}`: "at byte 2",
	} {
		refused := CheckText([]byte(raw))
		if want == "" && refused != nil || want != "" && (refused == nil || !strings.Contains(refused.Message, want)) {
			t.Errorf("%q: %v, want %q", raw, refused, want)
		}
	}
}

// broken is a body that ends with an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// A body is read as far as its limits, whether its length is said or not, and gives
// back all its room.
func TestReads(t *testing.T) {
	b := New(nil)
	for name, c := range map[string]struct {
		body   io.Reader
		limits Limits
		status int // 0 = it is taken
	}{
		"okEmpty":      {strings.NewReader(""), Limits{10, 10}, 0},
		"okFull":       {strings.NewReader("[0,1,2,3]"), Limits{9, 10}, 0},
		"okLong":       {strings.NewReader(strings.Repeat(" ", 3*medium)), Limits{3 * medium, 0}, 0},
		"okAllValues":  {strings.NewReader("[0,1,2,3]"), Limits{9, 0}, 0},
		"errLarge":     {strings.NewReader("[0,1,2,3]"), Limits{8, 10}, 413},
		"errLargeLong": {strings.NewReader(strings.Repeat(" ", 3*medium+1)), Limits{3 * medium, 0}, 413},
		"errDeep":      {strings.NewReader(strings.Repeat("[", MaxDepth+1)), Limits{100, 0}, 422},
		"errMany":      {strings.NewReader("[0,1,2,3]"), Limits{100, 3}, 422},
		"errBroken":    {broken{io.ErrUnexpectedEOF}, Limits{100, 0}, 400},
		"errMost":      {broken{&http.MaxBytesError{Limit: 7}}, Limits{100, 0}, 413},
	} {
		for _, said := range []string{"", "Chunked"} {
			t.Run(name+said, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodPost, "/", c.body)
				if s, ok := c.body.(*strings.Reader); ok {
					_, _ = s.Seek(0, io.SeekStart)
				}
				if said != "" {
					r.ContentLength = -1
				}
				body, err := b.Read(r, c.limits)
				var refused *Refusal
				switch {
				case c.status == 0 && err == nil:
					if s, ok := c.body.(*strings.Reader); ok && int64(len(body.JSON)) != s.Size() {
						t.Errorf("read %d bytes", len(body.JSON))
					}
					body.Close()
					body.Close()
				case !errors.As(err, &refused) || refused.Status != c.status:
					t.Errorf("got %v", err)
				}
			})
		}
	}
	for of, all := range map[*paging.Budget]int64{b.short: allShort, b.medium: allMedium, b.long: allLong, b.work: allWork} {
		share, err := of.Take(t.Context(), all)
		if err != nil {
			t.Fatal("not all room is given back")
		}
		share.Release()
	}
}

// Who finds no room is told when to come again, and large bodies keep nobody from
// short ones.
func TestNoRoom(t *testing.T) {
	b := New(nil)
	b.long = paging.NewBudget(2*medium, 1)
	large := func() *http.Request {
		return httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 2*medium)))
	}
	first, err := b.Read(large(), Limits{4 * medium, 0})
	if err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	second := large()
	if _, err := b.Read(second, Limits{4 * medium, 0}); !errors.As(err, &refused) || refused.Status != 503 || refused.Retry == 0 {
		t.Errorf("without room: %v", err)
	}
	if n, err := io.Copy(io.Discard, second.Body); n != 0 || err != nil {
		t.Errorf("%d bytes of the refused body are not read, and its client does not see the answer: %v", n, err)
	}
	if body, err := b.Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")), Limits{medium, 10}); err != nil {
		t.Error("a short one:", err)
	} else {
		body.Close()
	}
	first.Free()
	if body, err := b.Read(large(), Limits{4 * medium, 0}); err != nil {
		t.Error("with room again:", err)
	} else {
		body.Close()
	}
}
