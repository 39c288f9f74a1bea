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
	typed  string       // the last keys
	all    bytes.Buffer // everything that was ever shown
	ended  bool
}

// screen is what a terminal shows: as much of one as the library needs.
type screen struct {
	cells   [24][80]rune
	x, y    int
	rest    string // what has come of a sequence, or of a character
	unknown string // a sequence that this terminal does not know
}

var (
	sequence = regexp.MustCompile(`^\x1b\[([<=>?]?)([0-9;]*)[ $]?([@-~])`)
	command  = regexp.MustCompile(`^\x1b\][^\x07\x1b]*(\x07|\x1b\\)`)
	begun    = regexp.MustCompile(`^\x1b(\[[<=>?]?[0-9;]*[ $]?|\][^\x07\x1b]*\x1b?)?$`)
)

// write shows what the program wrote. How much of it is read at once is for the machine to
// say: a sequence may come in two parts.
func (s *screen) write(b string) {
	b = s.rest + b
	for s.rest = ""; len(b) > 0; {
		if m := sequence.FindStringSubmatch(b); m != nil {
			if m[1] == "" { // else a mode, or a question to the terminal
				s.control(m[3], m[2])
			}
			b = b[len(m[0]):]
			continue
		}
		if m := command.FindString(b); m != "" {
			b = b[len(m):]
			continue
		}
		if begun.MatchString(b) || !utf8.FullRuneInString(b) {
			s.rest = b
			return
		}
		r, size := utf8.DecodeRuneInString(b)
		b = b[size:]
		switch r {
		case '\x1b':
			if b[0] != 'M' { // up
				s.unknown = "ESC " + b[:1]
			}
			s.y, b = max(s.y-1, 0), b[1:]
		case '\r':
			s.x = 0
		case '\n':
			s.y = min(s.y+1, 23)
		case '\b':
			s.x = max(min(s.x, 79)-1, 0)
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
	s.x = min(s.x, 79) // after the last column a cursor waits beside it
	line := s.cells[s.y][:]
	switch what {
	case "A":
		s.y = max(s.y-n, 0)
	case "B":
		s.y = min(s.y+n, 23)
	case "C":
		s.x = min(s.x+n, 79)
	case "D":
		s.x = max(s.x-n, 0)
	case "G", "`":
		s.x = min(n-1, 79)
	case "d":
		s.y = min(n-1, 23)
	case "K", "J":
		switch {
		case arg == "1" && what == "K":
			clear(line[:s.x+1])
		case arg == "" || arg == "0":
			clear(line[s.x:])
			for y := s.y + 1; what == "J" && y < 24; y++ {
				clear(s.cells[y][:])
			}
		default:
			s.unknown = what + " " + arg
		}
	case "X":
		clear(line[s.x:min(s.x+n, 80)])
	case "@":
		copy(line[min(s.x+n, 80):], line[s.x:])
		clear(line[s.x:min(s.x+n, 80)])
	case "P":
		copy(line[s.x:], line[min(s.x+n, 80):])
		clear(line[max(80-n, s.x):])
	case "I":
		s.x = min((s.x/8+n)*8, 79)
	case "Z":
		s.x = max((s.x+7)/8-n, 0) * 8
	case "b":
		for range n {
			if s.x > 0 && s.x < 80 {
				line[s.x] = line[s.x-1]
				s.x++
			}
		}
	case "m", "h", "l", "q", "n", "c", "t", "u", "p":
	default:
		s.unknown = what + " " + arg
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
// the program: the person hangs up, and says nothing more.
func (p *pty) sees(text, keys string) {
	late := time.AfterFunc(time.Minute, func() {
		p.mu.Lock()
		p.ended = true
		p.more.Broadcast()
		p.mu.Unlock()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return // what went before never came
	}
	for !strings.Contains(p.screen.String(), text) || p.screen.unknown != "" {
		if p.ended || p.screen.unknown != "" {
			p.t.Errorf("%q never came after the keys %q (a sequence that the test does not know: %q):\n%s", text, p.typed, p.screen.unknown, p.screen.String())
			p.hangUp()
			return
		}
		p.more.Wait()
	}
	p.typed = keys
	if _, err := p.person.WriteString(keys); err != nil {
		p.t.Error(err)
	}
}

// ask asks at this terminal.
func (p *pty) ask(_ context.Context, questions []Question) error {
	return (&terminal{in: p.tty, out: p.tty}).ask(p.ctx, questions)
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

// Shift+tab goes back from a question whose answer is wrong so far, and the form still
// listens. What was typed there counts for nothing where it is not asked any more.
func TestGoingBack(t *testing.T) {
	const back, up, down, clearLine = "\x1b[Z", "\x1b[A", "\x1b[B", "\x15"
	w := newWorld(t)
	p := openPTY(t)
	go func() {
		p.sees("Which provider", up+"\r") // the last one: any address
		p.sees("What is its address", "nonsense\r")
		p.sees("write an address such as", back)
		p.sees("Which provider", "\r")
		p.sees("nonsense", clearLine+"more nonsense"+back) // before enter was pressed
		p.sees("Which provider", down+"\r")
		p.sees("Empty: gpt", back)
		p.sees("Which provider", up+"\r")
		p.sees("more nonsense", back)
		p.sees("Which provider", down+"\r")
		p.sees("Empty: gpt", "\r")
		p.sees("Where is the key", down+"\r")
		p.sees("The key", "two words"+back)   // no key
		p.sees("Where is the key", down+back) // there is none, which is wrong here
		p.sees("Empty: gpt", "\r")
		p.sees("Where is the key", "\r")
		p.sees("this provider needs a key", back)
		p.sees("Empty: gpt", "\r")
		p.sees("Where is the key", up+up+"\r")
		p.sees("Which variable", "not a name\r")
		p.sees("is no name", back)
		p.sees("Where is the key", down+"\r")
		p.sees("The key", clearLine+key+"\r")
		p.sees("https://api.openai.com/v1", back)
		p.sees("The key", "\r")
		p.sees("Write it down", "\r")
	}()
	w.run(p.ask, "--user", "--agent", "builtin", "--no-test")
	settings := w.file("home", ".uwf", "config.yaml")
	if w.code != 0 || !strings.Contains(settings, "https://api.openai.com/v1") || strings.Contains(settings, "nonsense") || !strings.Contains(w.file("home", ".uwf", ".env"), key) {
		t.Errorf("%d %s\n%s\n%s", w.code, w.errs.String(), settings, p.screen.String())
	}
}
