package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// RecorderOptions say what is recorded. Redact is needed: nothing is written
// that did not pass it.
type RecorderOptions struct {
	Step   int
	Role   string
	Redact Redactor
}

// Recorder records one step into a cassette. Nothing is written before Close,
// which replaces what the file has for this step and role (so a step that is run
// again is not recorded twice) and leaves all other lines as they are. Several processes
// may record steps into one file.
type Recorder struct {
	file string
	o    RecorderOptions

	mu      sync.Mutex
	turn    int
	entries map[int]Entry
	asides  []Entry
	memo    map[string]string // redacted texts: every turn repeats the former ones
	err     error             // the first failure: then nothing is written
	closed  bool
}

// Exchange is one request and the answer that the client got.
type Exchange struct {
	Request *dialect.Request
	Status  int
	Answer  dialect.Answer // for status 200
	Raw     []byte         // the body, or the stream, as the client got it
}

// NewRecorder starts recording a step. The file may be missing; one that can't
// be parsed is an error here, before any money is spent.
func NewRecorder(file string, o RecorderOptions) (*Recorder, error) {
	switch {
	case o.Redact == nil:
		return nil, errors.New("record cassette: no redactor is set: nothing may be written unredacted")
	case o.Step < 1 || o.Role == "":
		return nil, errors.New("record cassette: step and role are needed")
	}
	if _, err := Load(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Recorder{file: file, o: o, entries: map[int]Entry{}, memo: map[string]string{}}, nil
}

// Begin takes the next turn. Requests that end without an answer leave a gap,
// which Close closes.
func (r *Recorder) Begin() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	return r.turn
}

// Finish records a turn. After an error nothing more is recorded and Close
// writes nothing.
func (r *Recorder) Finish(turn int, x Exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	e, err := r.newEntry(x)
	if err != nil {
		r.err = fmt.Errorf("record turn %d of step %d (%s): not recorded: %w", turn, r.o.Step, r.o.Role, err)
		return r.err
	}
	r.entries[turn] = e
	return nil
}

func (r *Recorder) newEntry(x Exchange) (Entry, error) {
	messages, err := redactMessages(x.Request.Messages, r.redactText)
	if err != nil {
		return Entry{}, err
	}
	answer, err := r.newAnswer(x)
	return Entry{Step: r.o.Step, Role: r.o.Role, Answer: answer, Request: &Request{
		Path: x.Request.Dialect.Path(), Model: x.Request.Model, Stream: x.Request.Stream, Tools: x.Request.Tools, Messages: messages,
	}}, err
}

func (r *Recorder) newAnswer(x Exchange) (Answer, error) {
	raw, err := r.redactText(string(x.Raw))
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: x.Status}
	if x.Status != 200 {
		if a.Body = raw; raw == "" {
			a.Error = fmt.Sprintf("HTTP %d", x.Status)
		}
		return a, nil
	}
	a.Usage = newUsage(x.Answer.Usage)
	if !x.Request.Stream {
		a.Body = raw
		return a, nil
	}
	whole, err := r.holdsWholeSecrets(x)
	if whole {
		a.Events = raw
	}
	if whole || err != nil {
		return a, err
	}
	said, err := redactMessages([]dialect.Message{{Text: x.Answer.Text, Calls: x.Answer.Calls}}, r.redactText)
	if err == nil {
		a.Text, a.Calls, a.Finish = said[0].Text, said[0].Calls, x.Answer.Finish
	}
	return a, err
}

// holdsWholeSecrets says that no secret stands in a stream in pieces, as its events may
// have it. Else only text and calls can be recorded. Events of several calls may take
// turns: what each says is in the answer.
func (r *Recorder) holdsWholeSecrets(x Exchange) (bool, error) {
	texts := append(slices.Collect(maps.Values(joinEvents(x.Raw))), x.Answer.Text)
	texts = append(texts, lists.Map(x.Answer.Calls, func(c dialect.Call) string { return string(c.Args) })...)
	for _, joined := range texts {
		if clean, err := r.o.Redact(joined); err != nil || clean != joined {
			return false, err
		}
	}
	return true, nil
}

func (r *Recorder) redactText(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	if clean, ok := r.memo[s]; ok {
		return clean, nil
	}
	clean, err := r.o.Redact(s)
	if err != nil {
		return "", fmt.Errorf("redact: %w", err)
	}
	if clean == s {
		clean = s // share the memory
	}
	r.memo[s] = clean
	return clean, nil
}

func redactMessages(in []dialect.Message, redact Redactor) ([]dialect.Message, error) {
	out := slices.Clone(in)
	for i := range out {
		var err error
		if out[i].Text, err = redact(out[i].Text); err != nil {
			return nil, err
		}
		out[i].Calls = slices.Clone(out[i].Calls)
		for j := range out[i].Calls {
			c := &out[i].Calls[j]
			if c.Name, err = redact(c.Name); err != nil {
				return nil, err
			}
			args, err := redact(string(c.Args))
			if err != nil {
				return nil, err
			}
			c.Args = dialect.Args(args)
		}
	}
	return out, nil
}

// Close writes the step into the file, all of it or nothing. A step without any
// answer leaves the file alone.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.err != nil {
		return r.err
	}
	r.closed = true
	if len(r.entries) == 0 {
		return nil
	}
	lines, err := r.encodeTurns()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.file), 0o755)
	}
	if err == nil {
		err = changeFile(r.file, func(old []byte) ([]byte, error) { return r.replaceStep(old, lines) })
	}
	if err != nil {
		r.err = fmt.Errorf("record step %d (%s) into %s: %w", r.o.Step, r.o.Role, r.file, err)
	}
	return r.err
}

// changeFile has another file take the place of one, and keeps other processes from doing the
// same meanwhile. Whoever is killed in it leaves the old one.
func changeFile(file string, change func(old []byte) ([]byte, error)) error {
	f, err := lockedfile.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // it was read, and holds the lock
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(file); err != nil || !os.SameFile(locked, now) {
		return changeFile(file, change) // another process was faster
	}
	old, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return err
	}
	fresh, err := change(old)
	if err != nil {
		return err
	}
	return wholefile.Write(file, bytes.NewReader(fresh), locked.Mode().Perm())
}

// encodeTurns writes the turns without those messages that the turn before begins with,
// too. What is written passes the redactor once more, names of tools and all, and is read
// once more: a file that replay would refuse is worse than none.
func (r *Recorder) encodeTurns() ([]byte, error) {
	var turns []Entry
	var past []dialect.Message
	for _, turn := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[turn]
		full, same := e.Request.Messages, 0
		for same < min(len(past), len(full)) && sameMessage(past[same], full[same]) {
			same++
		}
		e.Request.Repeats, e.Request.Messages, past = same, full[same:], full
		turns = append(turns, e)
	}
	turns = append(turns, r.asides...)
	lines, err := encodeEntries(turns)
	if err != nil {
		return nil, err
	}
	clean, err := r.o.Redact(string(lines))
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	c, err := Parse(r.file, []byte(clean))
	if err != nil {
		return nil, fmt.Errorf("what would be written can't be read again: %w", err)
	}
	if n := len(c.entriesOf(r.o.Step, r.o.Role)); n != len(turns) {
		return nil, fmt.Errorf("what would be written has %d entries for this step instead of %d", n, len(turns))
	}
	return []byte(clean), nil
}

func sameMessage(a, b dialect.Message) bool {
	return a.Role == b.Role && a.Text == b.Text && describeCalls(a.Calls) == describeCalls(b.Calls)
}

// replaceStep puts lines in the place of the step's old ones, before those of later steps.
func (r *Recorder) replaceStep(old, lines []byte) ([]byte, error) {
	c, err := Parse(r.file, old)
	if err != nil {
		return nil, err
	}
	was := bytes.Split(old, []byte{'\n'})
	var before, after [][]byte
	for _, e := range c.Entries {
		switch line := was[e.line-1]; {
		case e.Step == r.o.Step && e.Role == r.o.Role:
		case e.Step > r.o.Step || len(after) > 0:
			after = append(after, line)
		default:
			before = append(before, line)
		}
	}
	all := slices.Concat(before, [][]byte{bytes.TrimSuffix(lines, []byte{'\n'})}, after)
	out := append(bytes.Join(all, []byte{'\n'}), '\n')
	if len(out) > MaxSize {
		return nil, fmt.Errorf("the cassette would be larger than %d bytes", MaxSize)
	}
	return out, nil
}

// joinEvents joins what a stream has in pieces: for each place in the events'
// JSON the texts of all events, one after the other.
func joinEvents(raw []byte) map[string]string {
	parts := map[string]*strings.Builder{}
	for r := dialect.NewEventReader(bytes.NewReader(raw), MaxSize); ; {
		ev, err := r.Next()
		if err != nil {
			break
		}
		dialect.Texts(ev.Data, func(path, text string) {
			if parts[path] == nil {
				parts[path] = &strings.Builder{}
			}
			parts[path].WriteString(text)
		})
	}
	out := map[string]string{}
	for path, b := range parts {
		out[path] = b.String()
	}
	return out
}
