package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/lockedfile"
	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// RecorderOptions say what is recorded. Redact is needed: nothing is written
// that did not pass it.
type RecorderOptions struct {
	Step   int
	Role   string
	Note   string // written into a new file
	Redact Redactor
}

// Recorder records one step into a cassette. Nothing is written before Close,
// which replaces what the file has for this step and role (so a step that is run
// again is not recorded twice) and leaves everything else, comments too, as it
// is. Several processes may record steps into one file.
type Recorder struct {
	file string
	o    RecorderOptions

	mu      sync.Mutex
	turn    int
	entries map[int]Entry
	memo    map[string]string // redacted texts: every turn repeats the former ones
	err     error             // the first failure: then nothing is written
	closed  bool
}

// Exchange is one request and the answer that the client got.
type Exchange struct {
	Path    string
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
	old, err := readFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if len(bytes.TrimSpace(old)) > 0 { // empty: another process is about to write it
		if _, err := Parse(file, old); err != nil {
			return nil, err
		}
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
	e, err := r.newEntry(turn, x)
	if err != nil {
		r.err = fmt.Errorf("record turn %d of step %d (%s): not recorded: %w", turn, r.o.Step, r.o.Role, err)
		return r.err
	}
	r.entries[turn] = e
	return nil
}

// Err is the first failure.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recorder) newEntry(turn int, x Exchange) (Entry, error) {
	messages, err := redactMessages(x.Request.Messages, r.redactText)
	if err != nil {
		return Entry{}, err
	}
	answer, err := r.newAnswer(x)
	if err != nil {
		return Entry{}, err
	}
	d, _ := dialect.ForPath(x.Path)
	return Entry{Step: r.o.Step, Role: r.o.Role, Turn: turn, Answer: answer, Request: &Request{
		Path: d.Path(), Model: x.Request.Model, Stream: x.Request.Stream, Tools: x.Request.Tools, Messages: messages,
	}}, nil
}

func (r *Recorder) newAnswer(x Exchange) (Answer, error) {
	a := Answer{Status: x.Status, Usage: x.Answer.Usage}
	var err error
	if x.Status != 200 {
		if _, message := dialect.ErrorMessage(x.Raw); message != "" {
			a.Error, err = r.redactText(message)
		} else {
			a.Body, err = r.redactText(string(x.Raw))
		}
		if a.Error == "" && a.Body == "" {
			a.Error = fmt.Sprintf("HTTP %d", x.Status)
		}
		return a, err
	}
	if !x.Answer.Whole {
		raw, ok, err := r.redactRaw(x)
		if err != nil {
			return Answer{}, err
		}
		if ok && x.Request.Stream {
			a.Events = raw
			return a, nil
		}
		if ok {
			a.Body = raw
			return a, nil
		}
	}
	m, err := redactMessages([]dialect.Message{x.Answer.Message()}, r.redactText)
	if err != nil {
		return Answer{}, err
	}
	a.Text, a.Calls, a.Finish = m[0].Text, m[0].Calls, x.Answer.Finish
	return a, nil
}

// redactRaw redacts an answer as it came. ok is false where a secret stands in it in
// pieces, as the events of a stream have it: then only text and calls can be
// recorded.
func (r *Recorder) redactRaw(x Exchange) (text string, ok bool, err error) {
	if x.Request.Stream {
		for _, joined := range joinEvents(x.Raw) {
			clean, err := r.o.Redact(joined)
			if err != nil {
				return "", false, err
			}
			if clean != joined {
				return "", false, nil
			}
		}
	}
	text, err = r.redactText(string(x.Raw))
	return text, err == nil && text != "", err
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
			if c.Args, err = redact(c.Args); err != nil {
				return nil, err
			}
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
	if err := r.writeFile(r.orderEntries()); err != nil {
		r.err = fmt.Errorf("record step %d (%s) into %s: %w", r.o.Step, r.o.Role, r.file, err)
	}
	return r.err
}

// orderEntries numbers the turns without gaps and shortens requests that begin with
// all of the former turn.
func (r *Recorder) orderEntries() []Entry {
	turns := make([]int, 0, len(r.entries))
	for t := range r.entries {
		turns = append(turns, t)
	}
	sort.Ints(turns)
	var out []Entry
	var past []dialect.Message
	for i, t := range turns {
		e := r.entries[t]
		e.Turn = i + 1
		full := e.Request.Messages
		if n := len(past); i > 0 && len(full) >= n && sameMessages(past, full[:n]) {
			e.Request.Continues, e.Request.Messages = true, full[n:]
		}
		d, _ := dialect.ForPath(e.Request.Path)
		past = append(slices.Clone(full), answerMessage(d, e.Answer))
		out = append(out, e)
	}
	return out
}

func sameMessages(a, b []dialect.Message) bool {
	return slices.EqualFunc(a, b, func(x, y dialect.Message) bool {
		return x.Role == y.Role && x.Text == y.Text && slices.EqualFunc(x.Calls, y.Calls, func(c, d dialect.Call) bool {
			return c.Name == d.Name && dialect.CanonicalArgs(c.Args) == dialect.CanonicalArgs(d.Args)
		})
	})
}

// writeFile holds the file's lock while it reads, changes and replaces it.
func (r *Recorder) writeFile(entries []Entry) error {
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return err
	}
	lock, err := lockFile(r.file)
	if err != nil {
		return err
	}
	if err = r.replaceEntries(entries); err != nil {
		if info, statErr := lock.Stat(); statErr == nil && info.Size() == 0 {
			err = errors.Join(err, os.Remove(r.file)) // locking made it
		}
	}
	return errors.Join(err, lock.Close())
}

// lockFile locks the file itself, again where another process has put a new one
// in its place while this one waited.
func lockFile(file string) (*lockedfile.File, error) {
	for {
		f, err := lockedfile.Edit(file)
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		if err == nil {
			var now os.FileInfo
			if now, err = os.Stat(file); err == nil && os.SameFile(held, now) {
				return f, nil
			}
		}
		if closeErr := f.Close(); closeErr != nil {
			return nil, closeErr
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
}

func (r *Recorder) replaceEntries(entries []Entry) error {
	old, err := readFile(r.file)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(old)) == 0 {
		if old, err = Encode(&Cassette{Note: r.o.Note}); err != nil {
			return err
		}
	}
	c, doc, err := parseCassette(r.file, old)
	if err != nil {
		return err
	}
	merged, err := r.mergeEntries(c, doc, entries)
	if err != nil {
		return err
	}
	clean, err := r.o.Redact(string(merged))
	if err != nil {
		return fmt.Errorf("redact: %w", err)
	}
	// What is written is read once more: a file that replay would refuse, or
	// read otherwise, is worse than none.
	if err := r.verifyText(clean, entries, clean == string(merged)); err != nil {
		return err
	}
	return writeAtomic(r.file, []byte(clean))
}

// mergeEntries puts the entries in the place of the step's old ones, else before the
// first entry of a later step.
func (r *Recorder) mergeEntries(c *Cassette, doc *yaml.Node, entries []Entry) ([]byte, error) {
	root := doc.Content[0]
	seq := entriesNode(root)
	var kept []*yaml.Node
	at := -1
	for i, e := range c.Entries {
		if e.Step == r.o.Step && e.Role == r.o.Role {
			continue
		}
		if at < 0 && e.Step > r.o.Step {
			at = len(kept)
		}
		kept = append(kept, seq.Content[i])
	}
	if at < 0 {
		at = len(kept)
	}
	var fresh []*yaml.Node
	for _, e := range entries {
		fresh = append(fresh, entryNode(e))
	}
	seq.Content = slices.Insert(kept, at, fresh...)
	seq.Style = 0
	return encodeNode(doc)
}

func entriesNode(root *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "entries" && root.Content[i+1].Kind == yaml.SequenceNode {
			return root.Content[i+1]
		}
		if root.Content[i].Value == "entries" {
			root.Content[i+1] = &yaml.Node{Kind: yaml.SequenceNode}
			return root.Content[i+1]
		}
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	addPair(root, "entries", seq)
	return seq
}

func (r *Recorder) verifyText(text string, want []Entry, exact bool) error {
	c, err := Parse(r.file, []byte(text))
	if err != nil {
		return fmt.Errorf("what would be written can't be read again: %w", err)
	}
	got := c.entriesOf(r.o.Step, r.o.Role)
	if len(got) != len(want) {
		return fmt.Errorf("what would be written has %d entries for this step instead of %d", len(got), len(want))
	}
	for i := range want {
		if exact && !sameEntry(want[i], got[i]) {
			return fmt.Errorf("turn %d would be read otherwise than it was recorded", want[i].Turn)
		}
	}
	return nil
}

// sameEntry compares what two entries mean: not where they stand in a file, nor
// how the arguments of calls are spaced.
func sameEntry(a, b Entry) bool {
	return reflect.DeepEqual(canonicalEntry(a), canonicalEntry(b))
}

func canonicalEntry(e Entry) Entry {
	e.Line = 0
	e.Answer.Calls = canonicalCalls(e.Answer.Calls)
	if e.Request == nil {
		return e
	}
	r := *e.Request
	r.Tools = append([]string(nil), r.Tools...)
	r.Messages = nil
	for _, m := range e.Request.Messages {
		m.Calls = canonicalCalls(m.Calls)
		r.Messages = append(r.Messages, m)
	}
	e.Request = &r
	return e
}

func canonicalCalls(in []dialect.Call) []dialect.Call {
	var out []dialect.Call
	for _, c := range in {
		c.Args = dialect.CanonicalArgs(c.Args)
		out = append(out, c)
	}
	return out
}

func writeAtomic(file string, b []byte) error {
	if len(b) > MaxSize {
		return fmt.Errorf("the cassette would be larger than %d bytes", MaxSize)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".cassette-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
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

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
