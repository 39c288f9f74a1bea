package cassette

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/lists"
)

// Redactor takes secrets out of a text. An error means that the text must not be
// used.
type Redactor func(string) (string, error)

// PlayerOptions say which part of a cassette is played.
type PlayerOptions struct {
	Step int
	Role string
	// AnyModel is what a client asks for that knows no model's name, because none
	// is configured where it runs: it fits every recorded one. Empty: none does.
	AnyModel string
	Redact   Redactor // what the recording was redacted with; may be nil
}

// Player plays one step of a cassette: its entries in order, each once. It is
// safe for concurrent use, but a client that asks in parallel asks in an order
// of its own, which may not be the recorded one.
type Player struct {
	cassette *Cassette
	o        PlayerOptions
	norm     normaliser
	entries  []Entry // exchanges with models
	asides   []Entry

	mu   sync.Mutex
	next int               // index of the entry that is due
	past []dialect.Message // of the last request
	err  *MismatchError    // the first one stays
}

// NewPlayer prepares a step for playing. That the cassette has nothing for the step
// is not an error before something is asked.
func (c *Cassette) NewPlayer(o PlayerOptions) *Player {
	if o.Redact == nil {
		o.Redact = func(s string) (string, error) { return s, nil }
	}
	p := &Player{cassette: c, o: o, norm: newNormaliser()}
	for _, e := range c.entriesOf(o.Step, o.Role) {
		if e.Aside != nil {
			p.asides = append(p.asides, e)
		} else {
			p.entries = append(p.entries, e)
		}
	}
	return p
}

// MismatchError says which request of a replay does not fit its cassette.
type MismatchError struct {
	Step  int
	Role  string
	Turn  int    // the request, from 1
	Of    int    // how many the cassette has for this step and role
	Where string // file:line of the entry, or the file
	What  string // what differs
	Want  string // as recorded; may be empty
	Got   string // as asked; may be empty
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replay: request %d of %d of step %d (%s) does not fit %s: %s", e.Turn, e.Of, e.Step, e.Role, e.Where, e.What)
	if e.Want != "" || e.Got != "" {
		fmt.Fprintf(&b, "\n  - recorded: %s\n  + now:      %s", e.Want, e.Got)
	}
	return b.String()
}

// Play finds the answer to a request. The error is a *MismatchError; after the
// first one every further request gets the same, because nothing that follows
// can be trusted to fit.
func (p *Player) Play(r *dialect.Request) (Answer, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return Answer{}, 0, p.err
	}
	turn := p.next + 1
	messages, err := redactMessages(r.Messages, p.o.Redact)
	var diff *MismatchError
	where := p.cassette.File
	switch {
	case err != nil:
		diff = &MismatchError{What: fmt.Sprintf("it can't be redacted: %v", err)}
	case p.next >= len(p.entries):
		diff = &MismatchError{What: p.describeExhausted(), Got: quoteAround(lastText(messages), 0)}
	default:
		where = p.cassette.describeEntry(p.entries[p.next])
		diff = p.compareRequest(p.entries[p.next], r, messages)
	}
	if diff != nil {
		diff.Step, diff.Role, diff.Turn, diff.Of, diff.Where = p.o.Step, p.o.Role, turn, len(p.entries), where
		p.err = diff
		return Answer{}, 0, diff
	}
	p.next, p.past = turn, messages
	return p.entries[turn-1].Answer, turn, nil
}

// Unused lists the entries of this step that nobody asked for.
func (p *Player) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for i, e := range p.entries[p.next:] {
		out = append(out, fmt.Sprintf("%s: step %d (%s), turn %d of %d", p.cassette.describeEntry(e), p.o.Step, p.o.Role, p.next+i+1, len(p.entries)))
	}
	return out
}

func (p *Player) describeExhausted() string {
	if len(p.entries) == 0 {
		return fmt.Sprintf("the cassette has nothing for this step and role (it has: %s)", p.cassette.describeContents())
	}
	return fmt.Sprintf("the cassette ends after %d", len(p.entries))
}

// compareRequest returns what differs first, or nil.
func (p *Player) compareRequest(e Entry, r *dialect.Request, messages []dialect.Message) *MismatchError {
	if e.Match != nil {
		return p.compareLoose(e.Match, r, messages)
	}
	if e.Answer.Events != "" && !r.Stream || e.Answer.Body != "" && e.Answer.Status == 200 && r.Stream {
		return &MismatchError{What: fmt.Sprintf("the answer is recorded as it came, for a request with stream: %v", !r.Stream)}
	}
	want := e.Request
	if want == nil {
		return nil
	}
	for _, field := range []MismatchError{
		{What: "another path", Want: want.Path, Got: r.Dialect.Path()},
		{What: "another model", Want: want.Model, Got: p.modelFor(want.Model, r.Model)},
		{What: "stream differs", Want: fmt.Sprint(want.Stream), Got: fmt.Sprint(r.Stream)},
		{What: "other tools", Want: strings.Join(want.Tools, ", "), Got: strings.Join(toolsFor(want.Tools, r.Tools), ", ")},
	} {
		if field.Want != field.Got {
			return &field
		}
	}
	if want.Repeats > len(p.past) {
		return &MismatchError{What: fmt.Sprintf("the entry repeats %d messages of a request that has %d", want.Repeats, len(p.past))}
	}
	return p.compareMessages(append(p.past[:want.Repeats:want.Repeats], want.Messages...), messages)
}

// modelFor is the model that a request asked for, by the name that is wanted where it
// stands for that.
func (p *Player) modelFor(want, got string) string {
	if want == "" || got != "" && got == p.o.AnyModel {
		return want
	}
	return got
}

// anyTools in the place of a recorded list of tools fits every list: no API has a tool of
// that name.
const anyTools = "*"

func toolsFor(want, got []string) []string {
	if slices.Equal(want, []string{anyTools}) {
		return want
	}
	return got
}

func (p *Player) compareLoose(m *Match, r *dialect.Request, messages []dialect.Message) *MismatchError {
	if got := p.modelFor(m.Model, r.Model); got != m.Model {
		return &MismatchError{What: "another model", Want: m.Model, Got: got}
	}
	for _, t := range m.Tools {
		if !slices.Contains(r.Tools, t) {
			return &MismatchError{What: fmt.Sprintf("the tool %s is not offered", t), Want: t, Got: strings.Join(r.Tools, ", ")}
		}
	}
	text := allText(messagesSinceAnswer(messages))
	normal := p.norm.normaliseText(text)
	for i, c := range m.Contains {
		if !strings.Contains(text, c) && !strings.Contains(normal, p.norm.normaliseText(c)) {
			return &MismatchError{
				What: fmt.Sprintf("text %d of match.contains does not occur in what is new in the request", i+1),
				Want: quoteAround(c, 0), Got: quoteAround(text, max(0, len(text)-excerptLen)),
			}
		}
	}
	return nil
}

func (p *Player) compareMessages(want, got []dialect.Message) *MismatchError {
	for i := range max(len(want), len(got)) {
		switch {
		case i == len(got):
			return &MismatchError{What: fmt.Sprintf("message %d is missing", i+1), Want: quoteMessage(want[i])}
		case i == len(want):
			return &MismatchError{What: fmt.Sprintf("message %d is one too many", i+1), Got: quoteMessage(got[i])}
		}
		w, g := want[i], got[i]
		at := fmt.Sprintf("message %d of %d (%s)", i+1, len(got), g.Role)
		if w.Role != g.Role {
			return &MismatchError{What: at + " has another role", Want: quoteMessage(w), Got: quoteMessage(g)}
		}
		if d := p.compareText(at, w.Text, g.Text); d != nil {
			return d
		}
		if d := p.compareText(at+", calls,", describeCalls(w.Calls), describeCalls(g.Calls)); d != nil {
			return d
		}
	}
	return nil
}

func quoteMessage(m dialect.Message) string { return m.Role + ": " + quoteAround(m.Text, 0) }

// describeCalls has a line for each call, the same whatever its id and however its
// arguments are written.
func describeCalls(calls []dialect.Call) string {
	var out strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&out, "%s %s\n", c.Name, c.Args.Canonical())
	}
	return out.String()
}

// compareText shows the first line that differs, around the first difference.
func (p *Player) compareText(at, want, got string) *MismatchError {
	if want == got {
		return nil
	}
	want, got = p.norm.normaliseText(want), p.norm.normaliseText(got)
	if want == got {
		return nil
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n, from := commonLength(w, g), 0
	if n < min(len(w), len(g)) {
		from = commonLength([]byte(w[n]), []byte(g[n]))
	}
	return &MismatchError{What: fmt.Sprintf("%s differs in line %d", at, n+1), Want: quoteLine(w, n, from), Got: quoteLine(g, n, from)}
}

func quoteLine(lines []string, n, at int) string {
	if n >= len(lines) {
		return "(no such line)"
	}
	return quoteAround(lines[n], at)
}

// commonLength is how many elements a and b begin with alike.
func commonLength[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

const excerptLen = 160

// quoteAround quotes a text around the byte at, on one line and within excerptLen.
func quoteAround(s string, at int) string {
	start := max(0, at-excerptLen/3)
	end := min(len(s), start+excerptLen)
	out := strings.ToValidUTF8(s[min(start, end):end], "")
	if start > 0 {
		out = "…" + out
	}
	if end < len(s) {
		out += "…"
	}
	return fmt.Sprintf("%q", out)
}

// messagesSinceAnswer is what came after the model's last answer.
func messagesSinceAnswer(messages []dialect.Message) []dialect.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == "assistant" {
			return messages[i+1:]
		}
	}
	return messages
}

func lastText(messages []dialect.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[len(messages)-1].Text
}

func allText(messages []dialect.Message) string {
	return strings.Join(lists.Map(messages, func(m dialect.Message) string { return m.Text }), "\n")
}
