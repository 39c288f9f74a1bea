// Package unpushed keeps the step of a thread in a file of this machine, from when it is
// sealed until it is on the remote: an outage, or the end of the job, then costs no paid
// work. It says what such a file holds and reads it as hostile, since in CI it comes from
// an artifact. It never decides what becomes of the step, and pushes nothing.
package unpushed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// Step is a sealed step: all that has to be known to put it into its thread without its
// agent.
type Step struct {
	Store  string // the store's id
	Thread gitcas.ThreadID
	// Entry is the thread's, as the step read it.
	Entry gitcas.Entry
	// Nonce is that of the claim under which the agent worked; empty: it had none.
	Nonce string
	// Handle is the step's StepNode among the Nodes, without what is only known when it is
	// pushed: its work commit, earlier attempts, digests.
	Handle node.Hash
	Nodes  map[node.Hash]node.Node
	Model  string // the name of the model that was asked; empty: none was
	Work   Work
}

// Record is the step's StepNode.
func (s Step) Record() (record.Step, error) {
	n, ok := s.Nodes[s.Handle]
	if !ok {
		return record.Step{}, fmt.Errorf("%w: %s", node.ErrNotFound, s.Handle)
	}
	return record.ParseStep(n)
}

// Work is the folder as an agent left it.
type Work struct {
	From wire.ID // the commit that it was made equal to; zero: none
	// Commit is what was made of it; zero: it was left as it was. Objects are the new ones,
	// with the commit.
	Commit  wire.ID
	Objects wire.Objects
}

// Format is the version of the file's format. A file lies there for as long as an outage
// lasts, so others are refused.
const Format = 1

// Bounds of a file, in bytes and in things. Those of nodes and files are the engine's own.
const (
	maxHeader  = 1 << 20
	maxLine    = 64 // before an object
	maxNodes   = 2 * seal.MaxDrafts
	maxObjects = 2 * workspace.DefaultMaxFiles
	maxTrees   = 64 << 20 // trees and the commit
	maxName    = 1000     // of a role, an agent, a model
	// MaxFile is the largest file that is read.
	MaxFile = maxHeader + 2*seal.MaxStep + workspace.DefaultMaxTotal + maxTrees + maxLine*maxObjects
)

// header is the file's first line. The nodes follow, a line each, and then the objects:
// a line with type and size, and the content.
type header struct {
	Format int             `json:"format"`
	Store  string          `json:"store"`
	Thread gitcas.ThreadID `json:"thread"`
	Entry  string          `json:"entry"` // as threads.yaml has it
	Nonce  string          `json:"nonce,omitempty"`
	Handle node.Hash       `json:"handle"`
	Model  string          `json:"model,omitempty"`
	Work   struct {
		From   string `json:"from,omitempty"`
		Commit string `json:"commit,omitempty"`
	} `json:"work"`
	Nodes   int `json:"nodes"`
	Objects int `json:"objects"`
}

// Encode writes the file of a step.
func Encode(w io.Writer, s Step) error {
	list, err := statefile.NewThreads().With(map[gitcas.ThreadID]*gitcas.Entry{s.Thread: &s.Entry})
	if err != nil {
		return err
	}
	h := header{
		Format: Format, Store: s.Store, Thread: s.Thread, Entry: string(list.Encode()), Nonce: s.Nonce,
		Handle: s.Handle, Model: s.Model, Nodes: len(s.Nodes), Objects: len(s.Work.Objects),
	}
	h.Work.From, h.Work.Commit = idText(s.Work.From), idText(s.Work.Commit)
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	_, _ = out.Write(append(line, '\n')) // Flush tells
	for _, hash := range slices.Sorted(maps.Keys(s.Nodes)) {
		line, err := node.EncodeLine(hash, "", s.Nodes[hash])
		if err != nil {
			return fmt.Errorf("node %s: %w", hash, err)
		}
		_, _ = out.Write(line)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.Work.Objects), func(a, b wire.ID) int { return slices.Compare(a[:], b[:]) }) {
		o := s.Work.Objects[id]
		_, _ = fmt.Fprintf(out, "%s %d\n", o.Type, len(o.Data))
		_, _ = out.Write(o.Data)
	}
	return out.Flush()
}

func idText(id wire.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// badStep is what is wrong with a file, whose path is put in by who knows it.
func badStep(format string, args ...any) error {
	return &BadError{Why: fmt.Sprintf(format, args...)}
}

// Decode reads a file that anybody may have written. Every node is what its hash says and
// every object gets the id of its content; what they say is not judged.
func Decode(r io.Reader) (Step, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	h, err := readHeader(in)
	if err != nil {
		return Step{}, err
	}
	s, err := h.buildStep()
	if err != nil {
		return s, err
	}
	if s.Nodes, err = readNodes(in, h.Nodes); err != nil {
		return s, err
	}
	step, err := s.Record()
	switch {
	case err != nil:
		return s, badStep("its step: %v", err)
	case step.Run == nil || !runName.MatchString(step.Run.ID) || step.Run.Attempt < 0 || step.Run.Attempt > maxAttempt:
		return s, badStep("its step names no run that an attempt could be kept for")
	case !goodName(step.Role) || !goodName(step.Agent):
		return s, badStep("its step names no role or agent")
	case step.Usage == nil || !goodUsage(*step.Usage):
		return s, badStep("what its step took is told with numbers that can't be")
	}
	if s.Work.Objects, err = readObjects(in, h.Objects); err != nil {
		return s, err
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return s, badStep("there is more in it than it says")
	}
	return s, s.checkWork()
}

// maxAttempt bounds the number of a run's attempt.
const maxAttempt = 1_000_000_000

var (
	runName    = lazyregexp.New(`^[0-9A-Za-z_-]{1,100}$`)
	noncePlain = lazyregexp.New(`^[0-9A-Za-z_-]{0,100}$`)
	storeName  = lazyregexp.New(`^[0-9a-z]{16,64}$`)
)

func goodName(s string) bool { return s != "" && len(s) <= maxName && text.IsLine(s) }

// goodUsage: no more of anything than a run can take.
func goodUsage(u record.Usage) bool {
	const most, longest = 1e12, 35 * 24 * 3_600_000 // no run of a workflow lasts longer
	amounts := []float64{float64(u.Turns), float64(u.InputTokens), float64(u.OutputTokens), float64(u.DurationMs), u.CostUSD}
	return u.DurationMs <= longest && !slices.ContainsFunc(amounts, func(n float64) bool { return !(n >= 0 && n <= most) })
}

func readHeader(in *bufio.Reader) (header, error) {
	var h header
	raw, err := readLine(in, maxHeader)
	if err != nil {
		return h, err
	}
	switch err := node.DecodeJSON(raw, &h); {
	case err != nil:
		return h, badStep("its first line: %v", err)
	case h.Format != Format:
		return h, badStep("it has format %d, and this uwf knows %d", h.Format, Format)
	}
	return h, nil
}

// readLine reads a line of at most that many bytes, without its end.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, badStep("a line of it is longer than %d bytes", most)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF):
			return nil, badStep("it is cut off")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// buildStep is what the first line says.
func (h header) buildStep() (Step, error) {
	s := Step{Store: h.Store, Thread: h.Thread, Nonce: h.Nonce, Handle: h.Handle, Model: h.Model}
	for _, field := range []struct {
		good bool
		why  string
		says any
	}{
		{storeName.MatchString(h.Store), "store: %.80q is no store's id", h.Store},
		{h.Thread.Valid(), "thread: %.80q is no thread's id", h.Thread},
		{noncePlain.MatchString(h.Nonce), "nonce: %.80q is none", h.Nonce},
		{h.Handle.Valid(), "handle: %.80q is no hash", h.Handle},
		{h.Model == "" || goodName(h.Model), "model: %.80q is no name", h.Model},
		{h.Nodes >= 1 && h.Nodes <= maxNodes, "it says that it holds %d nodes", h.Nodes},
		{h.Objects >= 0 && h.Objects <= maxObjects, "it says that it holds %d objects", h.Objects},
	} {
		if !field.good {
			return s, badStep(field.why, field.says)
		}
	}
	list, err := statefile.ParseThreads([]byte(h.Entry))
	if err != nil {
		return s, badStep("entry: %v", err)
	}
	var ok, ok2, ok3 bool
	s.Entry, ok = list.Get(s.Thread)
	s.Work.From, ok2 = parseID(h.Work.From)
	s.Work.Commit, ok3 = parseID(h.Work.Commit)
	switch {
	case !ok || len(list.Keys()) != 1:
		return s, badStep("entry: it is not of thread %s alone", s.Thread)
	case !ok2 || !ok3:
		return s, badStep("work: %.80q and %.80q are no commits", h.Work.From, h.Work.Commit)
	}
	return s, nil
}

func parseID(s string) (wire.ID, bool) {
	if s == "" {
		return wire.ZeroID, true
	}
	id := plumbing.NewHash(s)
	return id, plumbing.IsHash(s) && !id.IsZero() && id.String() == s
}

// readNodes reads nodes: each is what its hash says, and there once.
func readNodes(in *bufio.Reader, count int) (map[node.Hash]node.Node, error) {
	out := map[node.Hash]node.Node{}
	left := 2 * seal.MaxStep
	for range count {
		line, err := readLine(in, min(left, node.MaxFile))
		if err != nil {
			return nil, err
		}
		left -= len(line)
		h, of, n, err := node.DecodeLine(line)
		if err == nil {
			err = node.Verify(h, n)
		}
		if err != nil {
			return nil, badStep("a node of it: %v", err)
		}
		if _, twice := out[h]; twice || of != "" {
			return nil, badStep("node %s is there twice, or said to be of another step", h)
		}
		out[h] = n
	}
	return out, nil
}

// readObjects reads objects. A size is not believed before that much has come.
func readObjects(in *bufio.Reader, count int) (wire.Objects, error) {
	out := wire.Objects{}
	files, trees := int64(workspace.DefaultMaxTotal), int64(maxTrees)
	for range count {
		line, err := readLine(in, maxLine)
		if err != nil {
			return nil, err
		}
		var name string
		var size int64
		_, _ = fmt.Sscanf(string(line), "%s %d", &name, &size) // what it is not, it is not written like
		typ, err := plumbing.ParseObjectType(name)
		if err != nil || typ > plumbing.BlobObject || string(line) != fmt.Sprintf("%s %d", name, size) {
			return nil, badStep("%.80q begins no object", line)
		}
		left := &files
		if typ != plumbing.BlobObject {
			left = &trees
		}
		if *left -= size; size < 0 || *left < 0 || typ == plumbing.BlobObject && size > workspace.DefaultMaxFile {
			return nil, badStep("a %s of %d bytes is more than is taken", name, size)
		}
		var data bytes.Buffer
		switch n, err := io.CopyN(&data, in, size); {
		case errors.Is(err, io.EOF):
			return nil, badStep("it is cut off: %d bytes of a %s of %d", n, name, size)
		case err != nil:
			return nil, err
		}
		o := wire.NewObject(typ, data.Bytes())
		if _, twice := out[o.ID]; twice {
			return nil, badStep("object %s is there twice", o.ID)
		}
		out.Add(o)
	}
	return out, nil
}

// checkWork makes sure that the commit is there, and the only one.
func (s Step) checkWork() error {
	for id, o := range s.Work.Objects {
		if o.Type == plumbing.CommitObject && id != s.Work.Commit {
			return badStep("commit %s is not the step's", id)
		}
	}
	if _, ok := s.Work.Objects[s.Work.Commit]; s.Work.Commit.IsZero() == (len(s.Work.Objects) > 0) || !s.Work.Commit.IsZero() && !ok {
		return badStep("its work commit is not in it, or none is and there are files")
	}
	return nil
}
