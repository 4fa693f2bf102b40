package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
)

// session sets the host's operator up and returns the cookie of the session.
func (h *host) session() string {
	h.t.Helper()
	resp, body := h.ask("POST", "/api/v1/operator/setup", `{"code":"`+h.setupCode()+`","name":"op","password":"a long enough password"}`)
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.Secret == "" {
		h.t.Fatal(resp.Status, body)
	}
	return "pontoon=" + made.Secret
}

// TestHostileForgedRequests: a page of another origin can't make the browser of
// an operator who is logged in change anything, whatever the operation.
func TestHostileForgedRequests(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("bystander", "")
	cookie := h.session()
	var doc document
	_, text := h.request("GET", "/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	targets := [][2]string{}
	for path, methods := range doc.Paths {
		for method := range methods {
			if method != "get" {
				targets = append(targets, [2]string{strings.ToUpper(method), strings.NewReplacer("{id}", "bystander", "{", "", "}", "").Replace(path)})
			}
		}
	}
	for _, page := range []string{"login", "logout", "setup", "channels", "channels/bystander", "channels/bystander/delete", "access", "account", "dead"} {
		targets = append(targets, [2]string{"POST", "/console/" + page})
	}
	tries, through := 0, 0
	for _, target := range targets {
		for _, from := range [][]string{
			{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
			{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:1"}, {"Sec-Fetch-Site", "same-site"},
		} {
			for _, kind := range []string{"application/json", "text/plain", "application/x-www-form-urlencoded"} {
				tries++
				resp, _ := h.ask(target[0], target[1], "{}", append([]string{"Cookie", cookie, "Content-Type", kind}, from...)...)
				if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
					through++
					t.Errorf("%v from %v as %s: %s", target, from, kind, resp.Status)
				}
			}
		}
	}
	if resp, _ := h.ask("GET", "/api/v1/channels/bystander", "", "Cookie", cookie); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", resp.Status)
	}
	torture.Attack(t, "forged requests (CSRF) with the operator's cookie", tries, through, "answered other than 401, 403, 404 or 405")
	h.stop()
}

// TestHostileGuesses: many guesses of every kind of secret open nothing, what is
// wrong with them can't be told from the answer, and others are served meanwhile.
func TestHostileGuesses(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--trusted-proxy", "127.0.0.1")
	token := h.channel("bystander", "")
	cookie := h.servesStale(t, h.session())
	_, secret, _ := strings.Cut(cookie, "=")
	random := rand.New(rand.NewPCG(1, 2))
	// Near a real secret, and far from it.
	near := func(s string) string {
		b := []byte(s)
		switch at := random.IntN(len(b)); random.IntN(5) {
		case 0:
			b[at] ^= 1
		case 1:
			b = b[:at]
		case 2:
			b = append(b, 'x')
		case 3:
			return strings.ToUpper(s[:at]) + strings.ToLower(s[at:]) + "0"
		default:
			random.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		return string(b)
	}
	guesses := torture.Tries(60, 1000)
	tries, through := 0, 0
	answers := map[string]map[string]int{}
	note := func(door, answer string) {
		if answers[door] == nil {
			answers[door] = map[string]int{}
		}
		answers[door][answer]++
	}
	for i := range guesses {
		address := fmt.Sprintf("198.51.100.%d", i%200)
		for door, header := range map[string][]string{
			"operator's key": {"Authorization", "Bearer " + near(h.key)}, "session": {"Cookie", "pontoon=" + near(secret)}, "channel's token as a key": {"Authorization", "Bearer " + token},
		} {
			if header[1] == "Bearer "+h.key || header[1] == cookie {
				continue
			}
			tries++
			resp, body := h.ask("GET", "/api/v1/channels", "", append(header, "X-Forwarded-For", address)...)
			if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests {
				through++
				t.Errorf("%s: %s", door, resp.Status)
			}
			if resp.StatusCode == http.StatusUnauthorized {
				note(door, body)
			}
		}
		if guess := near(token); guess != token {
			tries++
			refused, code := h.register(guess, behalf(address))
			if refused == "" {
				through++
			}
			if guess != "" {
				note("channel's token", fmt.Sprint(refused, code))
			}
		}
		if i%10 == 0 { // each costs some ten milliseconds of work, as it should
			tries++
			body := url.Values{"name": {near("op")}, "password": {near("a long enough password")}}.Encode()
			resp, _ := h.ask("POST", "/console/login", body, "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-For", address)
			if len(resp.Header.Values("Set-Cookie")) > 0 && resp.StatusCode < 400 && resp.Header.Get("Location") != "/console/login" {
				through++
				t.Errorf("login: %s to %s", resp.Status, resp.Header.Get("Location"))
			}
		}
		if i%50 == 0 {
			if refused, _ := h.register(token, behalf("203.0.113.7")); refused != "" {
				t.Errorf("the adapter itself is refused meanwhile: %s", refused)
			}
		}
	}
	links, open := h.guessesLinks(t, near)
	tries, through = tries+links, through+open
	for door, said := range answers {
		if len(said) != 1 {
			t.Errorf("%s: the answers tell guesses apart: %v", door, said)
		}
	}
	torture.Attack(t, "guessed tokens, keys, sessions, setup links and passwords", tries, through, "let in; every refusal reads the same")
	h.stop()
}

// guessesLinks: codes near that of a setup link open nothing, an address is soon not
// looked at any more, and the link still opens from another one.
func (h *host) guessesLinks(t *testing.T, near func(string) string) (tries, through int) {
	var link struct{ URL string }
	h.must(&link, "POST", "/operator/link", "")
	_, code, _ := strings.Cut(link.URL, "code=")
	setUp := func(code, address string) answered {
		body, err := json.Marshal(map[string]string{"code": code, "name": "op", "password": "another long password"})
		if err != nil {
			t.Fatal(err)
		}
		resp, _ := h.ask("POST", "/api/v1/operator/setup", string(body), "X-Forwarded-For", address)
		return resp
	}
	limited := 0
	for range 50 {
		guess := near(code)
		if guess == code {
			continue
		}
		tries++
		switch resp := setUp(guess, "203.0.113.50"); resp.StatusCode {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			if limited++; resp.Header.Get("Retry-After") == "" {
				t.Error("a guess too many is not told when to try again")
			}
		default:
			through++
			t.Errorf("setup link: %s", resp.Status)
		}
	}
	if limited == 0 {
		t.Errorf("%d codes of setup links were looked at", tries)
	}
	// The page that a link opens tells no more.
	shown := map[string]int{}
	for range 50 {
		_, page := h.ask("GET", "/console/setup?code="+near(code), "", "X-Forwarded-For", "203.0.113.52")
		switch {
		case strings.Contains(page, "set up already"):
			shown["told"]++
		case strings.Contains(page, "Password again"):
			shown["limited"]++
		}
	}
	if shown["limited"] == 0 || shown["told"]+shown["limited"] < 49 {
		t.Errorf("the setup page shows %v", shown)
	}
	if resp := setUp(code, "203.0.113.51"); resp.StatusCode != http.StatusCreated {
		t.Errorf("the setup link itself: %s", resp.Status)
	}
	return tries, through
}

// servesStale: a browser that was logged out elsewhere shows its old cookie with all
// that it has under way. It is no guesser, and can log in again at once: to the cookie that is
// returned.
func (h *host) servesStale(t *testing.T, cookie string) string {
	t.Helper()
	from := []string{"X-Forwarded-For", "203.0.113.9"}
	if resp, body := h.ask("GET", "/api/v1/channels", "", append(from, "Cookie", cookie)...); resp.StatusCode != http.StatusOK {
		t.Fatalf("logged in: %s %s", resp.Status, body)
	}
	h.must(nil, "DELETE", "/sessions", "")
	var all sync.WaitGroup
	var refused, cleared atomic.Int32
	for range 8 { // as a browser has them at once
		all.Go(func() {
			for range 10 {
				resp, _ := h.ask("GET", "/api/v1/channels", "", append(slices.Clone(from), "Cookie", cookie)...)
				if resp.StatusCode == http.StatusUnauthorized {
					refused.Add(1)
				}
				if strings.Contains(resp.Header.Get("Set-Cookie"), "Max-Age=0") {
					cleared.Add(1)
				}
			}
		})
	}
	all.Wait()
	if refused.Load() != 80 || cleared.Load() != 80 {
		t.Errorf("of 80 requests %d were refused as nobody's, and %d took the cookie back", refused.Load(), cleared.Load())
	}
	resp, body := h.ask("POST", "/api/v1/sessions", `{"name":"op","password":"a long enough password"}`, append(from, "Cookie", cookie)...)
	var made struct{ Secret string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("log in again: %s %s", resp.Status, body)
	}
	if resp, body := h.ask("GET", "/api/v1/channels", "", append(from, "Cookie", "pontoon="+made.Secret)...); resp.StatusCode != http.StatusOK {
		t.Errorf("the new session: %s %s", resp.Status, body)
	}
	return "pontoon=" + made.Secret
}

// TestHostileTiming: how long a refusal takes does not tell how wrong a token is.
// A measurement, so that it runs in the long form alone, in turns.
func TestHostileTiming(t *testing.T) {
	if !torture.Siege() {
		return // a time proves nothing while other tests run
	}
	h := startHost(t, "--trusted-proxy", "127.0.0.1")
	token := h.channel("bystander", "")
	var rotated struct{ ID, Token string }
	h.must(&rotated, "POST", "/channels/bystander/tokens", `{"overlap":"0s"}`) // the first is known, and ended
	kinds := []string{token, "pnt_unknown-unknown-unknown-unknown", "x"}
	took := make([][]time.Duration, len(kinds))
	const rounds = 1500
	for i := range rounds {
		for k := range kinds {
			k = (k + i) % len(kinds)
			p := h.dial("", behalf(fmt.Sprintf("2001:db8:%x:%x::1", i, k)))
			from := time.Now()
			p.send(frame{"type": "register", "platform": "test", "token": kinds[k]})
			if ack := p.next("register_ack"); ack["ok"] == true {
				t.Fatal("let in")
			}
			took[k] = append(took[k], time.Since(from))
			_ = p.conn.Close()
		}
	}
	for k := range took {
		slices.Sort(took[k])
	}
	middle := func(k int) time.Duration { return took[k][rounds/2] }
	apart := 0
	for k := 1; k < len(kinds); k++ {
		ratio := float64(middle(k)) / float64(middle(0))
		t.Logf("median %s against %s of a known one: %.2f", middle(k), middle(0), ratio)
		if ratio < 0.8 || ratio > 1.25 {
			apart++
		}
	}
	torture.Attack(t, "timing of refused tokens", rounds*len(kinds), apart, fmt.Sprintf("medians apart by more than a fifth: ended %s, unknown %s, short %s", middle(0), middle(1), middle(2)))
	h.stop()
}

// TestHostilePaths: no spelling of a path leads out of what is served.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	ups := []string{"../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..\\", "..%5c", "....//", "..;/", "%252e%252e/", "..%00/", "..%c0%af", "..%ef%bc%8f", "/", "//", "./../"}
	files := []string{"etc/passwd", "admin.key", "pontoon.db", "master.key", "data/admin.key"}
	roots := []string{"/storage/v1/object/sign/", "/storage/v1/object/sign/agent-files/", "/assets/", "/console/static/", "/api/v1/schema/", "/socket.io/", "/"}
	address := strings.TrimPrefix(h.url, "http://")
	tries, through := 0, 0
	for _, root := range roots {
		for _, up := range ups {
			for _, file := range files {
				for _, times := range []int{1, 3, 9} {
					tries++
					answer := rawRequest(t, address, "GET "+root+strings.Repeat(up, times)+file+" HTTP/1.1\r\nHost: "+address+"\r\nConnection: close\r\n\r\n")
					if strings.Contains(answer, "root:") || strings.Contains(answer, h.key) || strings.Contains(answer, "SQLite format") {
						through++
						t.Errorf("%s%s%s: %.200s", root, up, file, answer)
					}
				}
			}
		}
	}
	torture.Attack(t, "paths out of what is served", tries, through, "a file's content in the answer")
	h.stop()
}

// rawRequest sends bytes that no client library would, and reads to the end.
func rawRequest(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(wait))
	if _, err := conn.Write([]byte(text)); err != nil {
		return "" // refused before it was read
	}
	var out []byte
	for buf := make([]byte, 4096); len(out) < 1<<20; {
		n, err := conn.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(out)
}
