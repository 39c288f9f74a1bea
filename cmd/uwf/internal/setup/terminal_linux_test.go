//go:build !race

// Not under the race detector: the library that draws the questions ends its readers
// with a race of its own, now and then.

package setup

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/testpty"
)

// pty is a terminal with a person at it.
type pty struct {
	t      *testing.T
	person *os.File // types and reads
	tty    *os.File // what the program sees
	ctx    context.Context
	hangUp context.CancelFunc

	mu     sync.Mutex
	more   *sync.Cond
	screen screen
	all    bytes.Buffer // everything that was ever shown
	ended  bool
}

// screen is what a terminal shows: as much of one as the library needs.
type screen struct {
	cells [24][80]rune
	x, y  int
}

var sequence = regexp.MustCompile(`^\x1b\[[<=>?]?([0-9;]*)\$?([A-Za-z])`)

func (s *screen) write(b string) {
	for len(b) > 0 {
		if m := sequence.FindStringSubmatch(b); m != nil {
			s.control(m[2], m[1])
			b = b[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(b)
		b = b[size:]
		switch r {
		case '\r':
			s.x = 0
		case '\n':
			s.y = min(s.y+1, 23)
		case '\t':
			s.x = min(s.x/8*8+8, 79)
		default:
			if r >= ' ' && s.x < 80 {
				s.cells[s.y][s.x] = r
				s.x++
			}
		}
	}
}

func (s *screen) control(what, arg string) {
	n := 1
	if v, err := strconv.Atoi(arg); err == nil {
		n = v
	}
	switch what {
	case "A":
		s.y = max(s.y-n, 0)
	case "B":
		s.y = min(s.y+n, 23)
	case "C":
		s.x = min(s.x+n, 79)
	case "D":
		s.x = max(min(s.x, 79)-n+s.x/80, 0)
	case "K", "J":
		clear(s.cells[s.y][min(s.x, 79):])
		for y := s.y + 1; what == "J" && y < 24; y++ {
			clear(s.cells[y][:])
		}
	case "X":
		clear(s.cells[s.y][min(s.x, 79):min(s.x+n, 80)])
	}
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.cells {
		for _, r := range line {
			if r == 0 {
				r = ' '
			}
			b.WriteRune(r)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	person, tty := testpty.Open(t)
	p := &pty{t: t, person: person, tty: tty}
	p.ctx, p.hangUp = context.WithCancel(t.Context())
	p.more = sync.NewCond(&p.mu)
	go p.read()
	return p
}

func (p *pty) read() {
	b := make([]byte, 4096)
	for {
		n, err := p.person.Read(b)
		p.mu.Lock()
		p.screen.write(string(b[:n]))
		p.all.Write(b[:n])
		p.ended = err != nil
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sees waits until the screen shows a text, and then types. What never comes ends
// the program: the person hangs up.
func (p *pty) sees(text, keys string) {
	late := time.AfterFunc(5*time.Minute, func() {
		p.mu.Lock()
		p.ended = true
		p.more.Broadcast()
		p.mu.Unlock()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.screen.String(), text) {
		if p.ended {
			p.t.Errorf("%q never came:\n%s", text, p.screen.String())
			p.hangUp()
			return
		}
		p.more.Wait()
	}
	if _, err := p.person.WriteString(keys); err != nil {
		p.t.Error(err)
	}
}

// ask asks at this terminal.
func (p *pty) ask(_ context.Context, o *Options, a *Answers) error {
	return (&terminal{in: p.tty, out: p.tty}).ask(p.ctx, o, a)
}

func (p *pty) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// A person at a terminal: arrows, a key that is not shown, a slip that is told, and
// ctrl-C. What is pasted is a key like any other.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	p := openPTY(t)
	go func() {
		p.sees("Which provider", "\x1b[B\x1b[A\r") // down, up: OpenAI
		p.sees("Which model", "x\x15\r")           // a slip, deleted: the usual one
		p.sees("I type it now", "\x1b[B\x1b[B\r")
		p.sees("this provider needs a key", "\x1b[A\r") // typed
		p.sees("The key", "two words\r")
		p.sees("this is no key", "\x15"+key+"\r")
		p.sees("write it down", "\r")
	}()
	base := provider(t, keyed)
	w.run(p.ask, "--base-url", base, "--user", "--agent", "builtin")
	if w.code != 0 || !strings.Contains(w.out.String(), `"tested": true`) || !strings.Contains(w.file("home", ".uwf", ".env"), key) {
		t.Errorf("%d %s\n%q", w.code, w.errs.String(), p.shown())
	}
	if strings.Contains(p.shown(), key) {
		t.Error("the key is shown while it is typed")
	}

	w, p = newWorld(t), openPTY(t)
	go p.sees("Which provider", "\x03")
	w.run(p.ask)
	if w.code != 1 || !strings.Contains(w.errs.String(), "stopped: nothing was written") || w.file("home", ".uwf", "config.yaml") != "" {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
}
