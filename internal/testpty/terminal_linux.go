package testpty

import (
	"bytes"
	"context"
	"os"

	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Terminal is a terminal of 24 lines of 80 columns with a person at it.
type Terminal struct {
	TTY *os.File // what the program sees
	// Context ends when the person hangs up: what they waited for never came.
	Context context.Context

	t      *testing.T
	person *os.File // types and reads
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
	sequence = lazyregexp.New(`^\x1b\[([<=>?]?)([0-9;]*)[ $]?([\x40-\x7e])`)
	command  = lazyregexp.New(`^\x1b\][^\x07\x1b]*(\x07|\x1b\\)`)
	begun    = lazyregexp.New(`^\x1b(\[[<=>?]?[0-9;]*[ $]?|\][^\x07\x1b]*\x1b?)?$`)
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
			if s.y++; s.y == len(s.cells) { // everything moves up
				s.y--
				copy(s.cells[:], s.cells[1:])
				s.cells[s.y] = [80]rune{}
			}
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
	case "H":
		s.x, s.y = 0, 0
		if y, x, ok := strings.Cut(arg, ";"); ok {
			row, _ := strconv.Atoi(y)
			column, _ := strconv.Atoi(x)
			s.y, s.x = min(max(row-1, 0), 23), min(max(column-1, 0), 79)
		}
	case "K", "J":
		switch {
		case arg == "1" && what == "K":
			clear(line[:s.x+1])
		case arg == "2" && what == "J":
			s.cells = [24][80]rune{}
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

// NewTerminal opens one.
func NewTerminal(t *testing.T) *Terminal {
	t.Helper()
	person, tty := Open(t)
	p := &Terminal{t: t, person: person, TTY: tty}
	p.Context, p.hangUp = context.WithCancel(t.Context())
	p.more = sync.NewCond(&p.mu)
	go p.read()
	return p
}

func (p *Terminal) read() {
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

// Sees waits until the screen shows a text, and then types. What never comes ends
// the program: the person hangs up, and says nothing more.
func (p *Terminal) Sees(text, keys string) {
	late := time.AfterFunc(time.Minute, func() {
		p.mu.Lock()
		p.ended = true
		p.more.Broadcast()
		p.mu.Unlock()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Context.Err() != nil {
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

// Shown is everything that was ever shown.
func (p *Terminal) Shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// Screen is what the terminal shows now.
func (p *Terminal) Screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}
