package cassette

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Redactor takes secrets out of a text. An error means that the text must not be
// used.
type Redactor func(string) (string, error)

// PlayerOptions say which part of a cassette is played.
type PlayerOptions struct {
	Step  int
	Role  string
	Rules []Rule // applied before DefaultRules
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
	entries  []Entry

	mu   sync.Mutex
	next int               // index of the entry that is due
	past []dialect.Message // the last request's messages and its answer
	err  *MismatchError    // the first one stays
}

// Player prepares a step for playing. That the cassette has nothing for the step
// is not an error before something is asked.
func (c *Cassette) Player(o PlayerOptions) *Player {
	return &Player{cassette: c, o: o, norm: newNormaliser(o.Rules), entries: c.entriesOf(o.Step, o.Role)}
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
func (p *Player) Play(path string, r *dialect.Request) (Answer, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return Answer{}, 0, p.err
	}
	turn := p.next + 1
	messages, redactErr := p.redactMessages(r.Messages)
	var diff *MismatchError
	switch {
	case redactErr != nil:
		diff = &MismatchError{Where: p.cassette.File, What: fmt.Sprintf("it can't be redacted: %v", redactErr)}
	case p.next >= len(p.entries):
		diff = &MismatchError{Where: p.cassette.File, What: p.describeExhausted(), Got: quoteAround(lastText(messages), 0)}
	default:
		e := p.entries[p.next]
		if diff = p.compareRequest(e, path, r, messages); diff != nil {
			diff.Where = p.cassette.describeEntry(e)
		}
	}
	if diff != nil {
		diff.Step, diff.Role, diff.Turn, diff.Of = p.o.Step, p.o.Role, turn, len(p.entries)
		p.err = diff
		return Answer{}, 0, diff
	}
	e := p.entries[p.next]
	p.next++
	p.past = append(slices.Clone(messages), answerMessage(r.Dialect, e.Answer))
	return e.Answer, turn, nil
}

// Unused lists the entries of this step that nobody asked for.
func (p *Player) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, e := range p.entries[p.next:] {
		out = append(out, fmt.Sprintf("%s: step %d (%s), turn %d of %d", p.cassette.describeEntry(e), p.o.Step, p.o.Role, e.Turn, len(p.entries)))
	}
	return out
}

func (p *Player) describeExhausted() string {
	if len(p.entries) == 0 {
		return fmt.Sprintf("the cassette has nothing for this step and role (it has: %s)", p.cassette.describeContents())
	}
	return fmt.Sprintf("the cassette ends after %d", len(p.entries))
}

func (p *Player) redactMessages(messages []dialect.Message) ([]dialect.Message, error) {
	if p.o.Redact == nil {
		return messages, nil
	}
	return redactMessages(messages, p.o.Redact)
}

// compareRequest returns what differs first, or nil.
func (p *Player) compareRequest(e Entry, path string, r *dialect.Request, messages []dialect.Message) *MismatchError {
	if e.Match != nil {
		return p.compareLoose(e.Match, r, messages)
	}
	if e.Answer.Events != "" && !r.Stream || e.Answer.Body != "" && e.Answer.Status == 200 && r.Stream {
		return &MismatchError{What: fmt.Sprintf("the answer is recorded as it came, for a request with stream: %v", !r.Stream)}
	}
	if e.Request == nil {
		return nil
	}
	want := e.Request
	wantDialect, _ := dialect.ForPath(want.Path)
	switch {
	case wantDialect != r.Dialect:
		return &MismatchError{What: "another path", Want: want.Path, Got: path}
	case p.otherModel(want.Model, r.Model):
		return &MismatchError{What: "another model", Want: want.Model, Got: r.Model}
	case want.Stream != r.Stream:
		return &MismatchError{What: "stream differs", Want: fmt.Sprint(want.Stream), Got: fmt.Sprint(r.Stream)}
	case !slices.Equal(want.Tools, r.Tools):
		return &MismatchError{What: "other tools", Want: strings.Join(want.Tools, ", "), Got: strings.Join(r.Tools, ", ")}
	}
	expected := want.Messages
	if want.Continues {
		expected = append(slices.Clone(p.past), want.Messages...)
	}
	return p.compareMessages(expected, messages)
}

func (p *Player) otherModel(want, got string) bool {
	return want != "" && want != got && (got == "" || got != p.o.AnyModel)
}

func (p *Player) compareLoose(m *Match, r *dialect.Request, messages []dialect.Message) *MismatchError {
	if p.otherModel(m.Model, r.Model) {
		return &MismatchError{What: "another model", Want: m.Model, Got: r.Model}
	}
	for _, t := range m.Tools {
		if !slices.Contains(r.Tools, t) {
			return &MismatchError{What: fmt.Sprintf("the tool %s is not offered", t), Want: t, Got: strings.Join(r.Tools, ", ")}
		}
	}
	text := allText(messagesSinceAnswer(messages))
	var normal string
	for i, c := range m.Contains {
		if strings.Contains(text, c) {
			continue
		}
		if normal == "" {
			normal = p.norm.normaliseText(text)
		}
		if !strings.Contains(normal, p.norm.normaliseText(c)) {
			return &MismatchError{
				What: fmt.Sprintf("text %d of match.contains does not occur in what is new in the request", i+1),
				Want: quoteAround(c, 0), Got: quoteAround(text, max(0, len(text)-excerptLen)),
			}
		}
	}
	return nil
}

func (p *Player) compareMessages(want, got []dialect.Message) *MismatchError {
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		at := fmt.Sprintf("message %d of %d (%s)", i+1, len(got), g.Role)
		if w.Role != g.Role {
			return &MismatchError{What: at + " has another role", Want: w.Role + ": " + quoteAround(w.Text, 0), Got: g.Role + ": " + quoteAround(g.Text, 0)}
		}
		if d := p.compareText(at, w.Text, g.Text); d != nil {
			return d
		}
		if d := p.compareCalls(at, w.Calls, g.Calls); d != nil {
			return d
		}
	}
	switch {
	case len(want) > len(got):
		m := want[len(got)]
		return &MismatchError{What: fmt.Sprintf("message %d is missing", len(got)+1), Want: m.Role + ": " + quoteAround(m.Text, 0)}
	case len(got) > len(want):
		m := got[len(want)]
		return &MismatchError{What: fmt.Sprintf("message %d is one too many", len(want)+1), Got: m.Role + ": " + quoteAround(m.Text, 0)}
	}
	return nil
}

func (p *Player) compareCalls(at string, want, got []dialect.Call) *MismatchError {
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i].Name + " " + dialect.CanonicalArgs(want[i].Args)
		}
		if i < len(got) {
			g = got[i].Name + " " + dialect.CanonicalArgs(got[i].Args)
		}
		if d := p.compareText(fmt.Sprintf("%s, call %d", at, i+1), w, g); d != nil {
			return d
		}
	}
	return nil
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
	n := 0
	for n < len(w) && n < len(g) && w[n] == g[n] {
		n++
	}
	var wl, gl string
	if n < len(w) {
		wl = w[n]
	}
	if n < len(g) {
		gl = g[n]
	}
	from := 0
	for from < len(wl) && from < len(gl) && wl[from] == gl[from] {
		from++
	}
	e := &MismatchError{What: fmt.Sprintf("%s differs in line %d", at, n+1), Want: quoteAround(wl, from), Got: quoteAround(gl, from)}
	if n >= len(w) {
		e.Want = "(no such line)"
	}
	if n >= len(g) {
		e.Got = "(no such line)"
	}
	return e
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
	var parts []string
	for _, m := range messages {
		parts = append(parts, m.Text)
	}
	return strings.Join(parts, "\n")
}

// answerMessage is an answer as the client sends it back.
func answerMessage(d dialect.Dialect, a Answer) dialect.Message {
	switch {
	case a.Body != "":
		if parsed, err := dialect.ParseAnswer(d, []byte(a.Body)); err == nil {
			return parsed.Message()
		}
	case a.Events != "":
		return CollectEvents(d, a.Events).Message()
	}
	return dialect.Answer{Text: a.Text, Calls: a.Calls}.Message()
}

// CollectEvents puts the answer of a recorded stream together.
func CollectEvents(d dialect.Dialect, events string) dialect.Answer {
	c := dialect.NewCollector(d)
	for r := dialect.NewEventReader(strings.NewReader(events), MaxSize); ; {
		ev, err := r.Next()
		if err != nil {
			return c.Answer()
		}
		c.Add(ev)
	}
}
