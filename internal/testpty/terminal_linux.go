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
	cells   [24][80]cell
	x, y    int
	pen     pen
	rest    string // what has come of a sequence, or of a character
	unknown string // a sequence that this terminal does not know
}

// cell is one place of the screen; zero where nothing was written.
type cell struct {
	rune
	pen
}

// pen is how characters are written, as the arguments of SGR (ECMA-48) that have it so again.
type pen struct {
	bold, faint, italic, underline, reverse bool
	front, back                             string // as "31" or "38;5;9"; "" the usual one
}

// sgr is what a terminal is told, so that it writes with the pen after a reset.
func (p pen) sgr() string {
	codes := []string{"0"}
	for _, style := range []struct {
		on   bool
		code string
	}{{p.bold, "1"}, {p.faint, "2"}, {p.italic, "3"}, {p.underline, "4"}, {p.reverse, "7"}, {p.front != "", p.front}, {p.back != "", p.back}} {
		if style.on {
			codes = append(codes, style.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// obey changes the pen by the arguments of an SGR sequence. What it doesn't know is returned.
func (p *pen) obey(arg string) (unknown string) {
	codes := strings.Split(arg, ";")
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i]) // an empty one is 0
		switch {
		case n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.faint = true
		case n == 3:
			p.italic = true
		case n == 4:
			p.underline = true
		case n == 7:
			p.reverse = true
		case n == 22:
			p.bold, p.faint = false, false
		case n == 23:
			p.italic = false
		case n == 24:
			p.underline = false
		case n == 27:
			p.reverse = false
		case n == 38 || n == 48:
			size := 2 // 5;n, or 2;r;g;b
			if i+1 < len(codes) && codes[i+1] == "2" {
				size = 4
			}
			colour := strings.Join(codes[i:min(i+size+1, len(codes))], ";")
			if n == 38 {
				p.front = colour
			} else {
				p.back = colour
			}
			i += size
		case n == 39:
			p.front = ""
		case n == 49:
			p.back = ""
		case n >= 30 && n <= 37 || n >= 90 && n <= 97:
			p.front = codes[i]
		case n >= 40 && n <= 47 || n >= 100 && n <= 107:
			p.back = codes[i]
		default:
			return codes[i]
		}
	}
	return ""
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
			s.moveDown()
		case '\b':
			s.x = max(min(s.x, 79)-1, 0)
		case '\t':
			s.x = min(s.x/8*8+8, 79)
		default:
			if r < ' ' {
				break
			}
			if s.x == 80 { // the next line begins with the character that has no place on this one
				s.x = 0
				s.moveDown()
			}
			s.cells[s.y][s.x] = cell{r, s.pen}
			s.x++
		}
	}
}

// moveDown goes to the next line; below the last one everything moves up.
func (s *screen) moveDown() {
	if s.y++; s.y == len(s.cells) {
		s.y--
		copy(s.cells[:], s.cells[1:])
		s.cells[s.y] = [80]cell{}
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
			s.cells = [24][80]cell{}
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
	case "m":
		if code := s.pen.obey(arg); code != "" {
			s.unknown = "SGR " + code
		}
	case "h", "l", "q", "n", "c", "t", "u", "p":
	default:
		s.unknown = what + " " + arg
	}
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.cells {
		for _, c := range line {
			b.WriteRune(max(c.rune, ' '))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// paintLines is the screen with its colours: lines that a terminal shows as they were shown, without
// what is empty at their ends and below them.
func (s *screen) paintLines() string {
	var lines []string
	for _, line := range s.cells {
		var b strings.Builder
		end := len(line)
		for end > 0 && max(line[end-1].rune, ' ') == ' ' && !line[end-1].reverse && line[end-1].back == "" {
			end--
		}
		var now pen
		for _, c := range line[:end] {
			if c.pen != now {
				now = c.pen
				b.WriteString(now.sgr())
			}
			b.WriteRune(max(c.rune, ' '))
		}
		if now != (pen{}) {
			b.WriteString(pen{}.sgr())
		}
		lines = append(lines, b.String())
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
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

// wakeLate lets who waits for more know that none comes: long after it was to be here.
func (p *Terminal) wakeLate() *time.Timer {
	return time.AfterFunc(3*time.Minute, func() {
		p.mu.Lock()
		p.ended = true
		p.more.Broadcast()
		p.mu.Unlock()
	})
}

// Sees waits until the screen shows a text, and then types. What never comes ends
// the program: the person hangs up, and says nothing more.
func (p *Terminal) Sees(text, keys string) {
	defer p.wakeLate().Stop()
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

// Until waits until the screen, painted, is as it is to be, and returns it. What never comes
// is returned as it is then.
func (p *Terminal) Until(done func(painted string) bool) string {
	defer p.wakeLate().Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && !done(p.screen.paintLines()) {
		p.more.Wait()
	}
	return p.screen.paintLines()
}

// Painted is what the terminal shows now, with its colours, as SGR sequences.
func (p *Terminal) Painted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.paintLines()
}

// Clear empties the screen but for the line that the cursor is on, as ctrl-L does in a shell.
func (p *Terminal) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.screen
	line := s.cells[s.y]
	s.cells = [24][80]cell{line}
	s.y = 0
}
