package webchat

import (
	"cmp"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// bounds are what the store may hold. A conversation whose page is open, or
// that has something for the host, is kept; others go, longest unused first.
type bounds struct {
	conversations int
	entries       int           // of one conversation
	bytes         int           // of one conversation's entries
	total         int           // of all
	queue         int           // of one conversation, not yet handed to the host
	queued        int           // bytes of all queues
	typing        time.Duration // an indicator that nobody ends goes by itself
}

// defaultBounds keep the adapter's memory far below the 256 MiB that a plugin
// usually has. One entry is at most a frame of 256 KiB.
var defaultBounds = bounds{
	conversations: 1000, entries: 200, bytes: 2 << 20, total: 64 << 20, queue: 64, queued: 16 << 20,
	typing: 5 * time.Minute,
}

// What one conversation may say: a person in a hurry, or a script that isn't.
const (
	perSecond = 2
	burst     = 20
)

// store holds the conversations of this process.
type store struct {
	epoch  string        // names this process in ids, which a page may still hold when it is gone
	work   chan struct{} // a token: something may be there to hand over
	bounds bounds

	mu    sync.Mutex
	convs map[string]*conversation
	files map[string]*grant // by token
	uploads
	last  uint64 // the latest number or revision
	bytes int    // of all entries
	wait  int    // bytes of all queues
}

// conversation is one browser's, or several that share its key. The store's
// mutex guards it.
type conversation struct {
	id       string
	entries  []*entry
	byID     map[string]*entry // by id, and by Client
	bytes    int
	queue    []*entry // what the host shall get, oldest first
	draining bool     // a courier is at it
	streams  map[*stream]struct{}
	typing   *time.Timer // nil = not typing
	used     time.Time
	pace     *rate.Limiter
}

func newStore(b bounds) *store {
	return &store{
		epoch: strings.ToLower(rand.Text()[:10]), work: make(chan struct{}, 1), bounds: b,
		convs: map[string]*conversation{}, files: map[string]*grant{}, uploads: uploads{byID: map[string]*upload{}},
	}
}

// errFull: every conversation is in use.
var errFull = errors.New("too many conversations are open")

// open returns the conversation, new if need be. The caller holds the mutex.
func (s *store) open(id string) (*conversation, error) {
	c := s.convs[id]
	if c == nil {
		if len(s.convs) >= s.bounds.conversations && !s.evict(nil) {
			return nil, errFull
		}
		c = &conversation{
			id: id, byID: map[string]*entry{}, streams: map[*stream]struct{}{},
			pace: rate.NewLimiter(perSecond, burst),
		}
		s.convs[id] = c
	}
	c.used = time.Now()
	return c, nil
}

// evict drops the conversation that was unused for longest, but never keep. It
// reports whether there was one.
func (s *store) evict(keep *conversation) bool {
	var oldest *conversation
	for _, c := range s.convs {
		idle := len(c.streams) == 0 && len(c.queue) == 0 && !c.draining && c != keep
		if idle && (oldest == nil || c.used.Before(oldest.used)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	for len(oldest.entries) > 0 {
		s.drop(oldest)
	}
	if oldest.typing != nil {
		oldest.typing.Stop()
	}
	delete(s.convs, oldest.id)
	return true
}

// drop removes the conversation's oldest entry.
func (s *store) drop(c *conversation) {
	e := c.entries[0]
	c.entries = slices.Delete(c.entries, 0, 1)
	c.bytes -= len(e.frame)
	s.bytes -= len(e.frame)
	e.gone = true
	delete(c.byID, e.ID)
	delete(c.byID, e.Client)
	s.revoke(e)
	for _, up := range e.uploads {
		s.release(up)
	}
}

// add makes e the conversation's newest entry and tells its browsers.
func (s *store) add(c *conversation, e *entry) {
	s.last++
	e.Number, e.ID, e.At = s.last, s.epoch+"-"+strconv.FormatUint(s.last, 36), time.Now().UnixMilli()
	s.allow(e)
	c.entries = append(c.entries, e)
	c.byID[e.ID] = e
	if e.Client != "" {
		c.byID[e.Client] = e
	}
	s.changed(c, e)
}

// allow lets the files of the entry be read; revoke ends that.
func (s *store) allow(e *entry) {
	for _, p := range e.Pieces {
		if p.grant != nil {
			s.files[p.grant.token] = p.grant
		}
	}
}

func (s *store) revoke(e *entry) {
	for _, p := range e.Pieces {
		if p.grant != nil {
			delete(s.files, p.grant.token)
		}
	}
}

// changed encodes e anew, tells the browsers and restores the bounds.
func (s *store) changed(c *conversation, e *entry) {
	if e.gone {
		return
	}
	s.last++
	e.Rev = s.last
	before := len(e.frame)
	e.encode()
	c.bytes += len(e.frame) - before
	s.bytes += len(e.frame) - before
	for len(c.entries) > 1 && (len(c.entries) > s.bounds.entries || c.bytes > s.bounds.bytes) {
		s.drop(c)
	}
	for s.bytes > s.bounds.total && s.evict(c) {
	}
	for s.bytes > s.bounds.total && len(c.entries) > 1 {
		s.drop(c)
	}
	c.wake()
}

// wake tells every browser of the conversation to look.
func (c *conversation) wake() {
	for st := range c.streams {
		select {
		case st.wake <- struct{}{}:
		default: // it is already told
		}
	}
}

// post adds what the host sent and returns its handle.
func (s *store) post(id string, e *entry) (handle string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return "", err
	}
	s.settleDrafts(c, "")
	if old := c.interim(e); old != nil {
		s.replace(old, e.Pieces)
		s.changed(c, old)
		return old.ID, nil
	}
	s.add(c, e)
	return e.ID, nil
}

// setTyping shows or ends the indicator.
func (s *store) setTyping(id string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return err
	}
	if c.typing != nil {
		c.typing.Stop()
		c.typing = nil
	}
	if on {
		var t *time.Timer
		t = time.AfterFunc(s.bounds.typing, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.typing == t {
				c.typing = nil
				c.wake()
			}
		})
		c.typing = t
	}
	c.wake()
	return nil
}

// attach makes st a browser of the conversation; detach ends that.
func (s *store) attach(id string, st *stream) (*conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return nil, err
	}
	c.streams[st] = struct{}{}
	return c, nil
}

func (s *store) detach(c *conversation, st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.streams, st)
	c.used = time.Now()
}

// since returns the frames of what changed after rev, oldest change first, the
// latest revision among them, and whether somebody types.
func (s *store) since(c *conversation, rev uint64) (frames [][]byte, latest uint64, typing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var news []*entry
	for _, e := range c.entries {
		if e.Rev > rev {
			news = append(news, e)
		}
	}
	slices.SortFunc(news, func(a, b *entry) int { return cmp.Compare(a.Rev, b.Rev) })
	for _, e := range news {
		frames, rev = append(frames, e.frame), e.Rev
	}
	return frames, rev, c.typing != nil
}
