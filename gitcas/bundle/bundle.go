// Package bundle writes threads as `ocas export` of the TypeScript uwf does: a tar archive of
// nodes and of the variables that name threads and workflows, which `ocas import` and
// uwf-import read. What the TypeScript uwf knows goes out as it is; records of our own are
// converted, so that their hashes differ. It reads a store and never changes it.
package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// UnderWay is the reason that a thread waits for while uwf-import moves it over: nobody is to step
// it before its last step is there, nor to export what there is of it.
const UnderWay = "it is being imported; run the same uwf-import again if that was broken off"

// Thread is a thread that goes out.
type Thread struct {
	ID    gitcas.ThreadID
	View  *gitcas.View  // that has its folder
	Entry gitcas.Entry  // of one that has ended only its head counts
	Ended *gitcas.Ended // nil: it is on the tip
}

// Workflow gives a workflow that g finds the form in which it goes out: its hash then, and its
// node.
type Workflow func(g node.Getter, h node.Hash) (node.Hash, node.Node, error)

// Bundle is what is to be written. New makes one.
type Bundle struct {
	workflow  Workflow
	nodes     node.Map
	workflows map[node.Hash]node.Hash // those of the threads, and what each is in here
	variables []variable
}

// New makes a Bundle without anything.
func New(workflow Workflow) *Bundle {
	return &Bundle{workflow: workflow, nodes: node.Map{}, workflows: map[node.Hash]node.Hash{}}
}

// Exported is a thread as it is in a bundle.
type Exported struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Head     node.Hash       `json:"head"`
	Exported node.Hash       `json:"exported"` // its head in the bundle
	Steps    int             `json:"steps"`
	Nodes    int             `json:"nodes"` // of which others may have some, too
}

// Add adds a thread with all that it refers to. It ends with an error where one hash names two
// nodes, of which a bundle can hold only one.
func (b *Bundle) Add(ctx context.Context, t Thread) (Exported, error) {
	if s := t.Entry.Suspended; s != nil && s.Reason == UnderWay {
		return Exported{}, errors.New(UnderWay)
	}
	c := converter{ctx: ctx, t: t, workflow: b.workflow, nodes: node.Map{}}
	heads, err := c.convertThread()
	for h, n := range c.nodes {
		if err == nil {
			err = putNode(b.nodes, h, n)
		}
	}
	if err != nil {
		return Exported{}, err
	}
	b.workflows[c.flow] = c.form
	out := Exported{t.ID, t.Entry.Head, heads[len(heads)-1], len(heads) - 1, len(c.nodes)}
	head, created := c.nodes[out.Exported], max(t.ID.Time().UnixMilli(), 0)
	tags, updated := t.describeStanding(head.Timestamp)
	b.variables = append(b.variables, variable{
		Name: "@uwf/thread/" + string(t.ID), Schema: head.Type, Value: out.Exported,
		Created: created, Updated: max(updated, created), Tags: tags, Labels: []string{}, // a fork is younger than its head
	})
	return out, nil
}

// describeStanding is a thread's status as the TypeScript uwf has it, and since when; at is when
// its head was made. What waits for its turn there, or failed, is active without a word.
func (t Thread) describeStanding(at int64) (tags, int64) {
	status := "end"
	switch e := t.Entry; {
	case t.Ended != nil:
		if at = t.Ended.CompletedAt; t.Ended.Reason == gitcas.ReasonCancelled {
			status = "cancelled"
		}
	case e.Suspended != nil:
		return tags{Status: "suspended", SuspendedRole: e.Suspended.Role, SuspendMessage: e.Suspended.Reason}, at
	case e.Status != gitcas.StatusEnded:
		return tags{}, at
	}
	return tags{Status: status, CompletedAt: fmt.Sprint(at)}, at
}

// sayable are the names that `ocas import` takes: one other ends it
// (packages/core/src/validation.ts of ocas).
var sayable = lazyregexp.New(`^[a-zA-Z0-9._-]+$`)

// AddNames registers the workflows of the threads under the names that a registry has for
// them. The notes say what the TypeScript uwf misses, a line each.
func (b *Bundle) AddNames(registry map[string]gitcas.RegistryEntry) (notes []string) {
	for _, h := range slices.Sorted(maps.Keys(b.workflows)) {
		n := b.nodes[b.workflows[h]]
		m, _ := n.Payload.(map[string]any)
		switch {
		case n.Type == record.OwnWorkflowSchema:
			notes = append(notes, fmt.Sprintf("workflow %s stays as it is here: its conditions, lists of edges or system prompts have no form that the TypeScript uwf can run; its threads can be read there", m["name"]))
		case b.workflows[h] != h:
			notes = append(notes, fmt.Sprintf("workflow %s goes out without its limits, approvals and checks, which the TypeScript uwf does not know", m["name"]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		h, there := b.workflows[registry[name].Hash]
		n := b.nodes[h]
		switch {
		case there && sayable.MatchString(name):
			b.variables = append(b.variables, variable{Name: "@uwf/registry/" + name, Schema: n.Type, Value: h, Created: n.Timestamp, Updated: n.Timestamp, Labels: []string{}})
		case there:
			notes = append(notes, fmt.Sprintf("workflow %s is not registered in the bundle: the TypeScript uwf takes names of the characters a-z A-Z 0-9 . _ - alone", name))
		}
	}
	slices.SortFunc(b.variables, func(x, y variable) int { return strings.Compare(x.Name, y.Name) })
	return notes
}

// Nodes is how many nodes the bundle has.
func (b *Bundle) Nodes() int { return len(b.nodes) }

// putNode adds a node. Of one that was made several times the first time counts, as it does
// where a node is stored by its hash alone.
func putNode(into node.Map, h node.Hash, n node.Node) error {
	if old, there := into[h]; there {
		n.Timestamp = min(n.Timestamp, old.Timestamp)
		if old.Timestamp = n.Timestamp; !reflect.DeepEqual(old, n) {
			return fmt.Errorf("two different nodes have the hash %s, and a bundle can hold only one of them: export the threads apart", h)
		}
	}
	into[h] = n
	return nil
}

// variable is a line of vars.jsonl. Times are milliseconds.
type variable struct {
	Name    string    `json:"name"`
	Schema  node.Hash `json:"schema"`
	Value   node.Hash `json:"value"`
	Created int64     `json:"created"`
	Updated int64     `json:"updated"`
	Tags    tags      `json:"tags"`
	Labels  []string  `json:"labels"`
}

// tags are what a thread's variable says besides its head, as setThread of the TypeScript uwf
// writes them.
type tags struct {
	Status         string `json:"status,omitempty"`
	SuspendedRole  string `json:"suspendedRole,omitempty"`
	SuspendMessage string `json:"suspendMessage,omitempty"`
	CompletedAt    string `json:"completedAt,omitempty"` // milliseconds
}

// Bytes are the archive. A bundle of the same threads, at the same heads, is the same bytes.
func (b *Bundle) Bytes() ([]byte, error) {
	var out, lines bytes.Buffer
	for _, h := range slices.Sorted(maps.Keys(b.nodes)) {
		n := b.nodes[h]
		data, err := node.EncodeCBOR(map[string]any{"type": string(n.Type), "payload": n.Payload, "timestamp": n.Timestamp})
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", h, err)
		}
		writeEntry(&out, "cas/"+string(h)+".bin", data, n.Timestamp)
	}
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false)
	for _, v := range b.variables {
		if err := e.Encode(v); err != nil {
			return nil, err
		}
	}
	writeEntry(&out, "vars.jsonl", lines.Bytes(), 0)
	writeEntry(&out, "tags.jsonl", nil, 0)
	return append(out.Bytes(), make([]byte, 2*block)...), nil
}

const block = 512 // of a tar archive, in bytes

// writeEntry writes a file of the archive, byte by byte as packTar of ocas does
// (packages/core/src/bundle.ts): archive/tar would fill in fields that are empty there. at is in
// milliseconds.
func writeEntry(out *bytes.Buffer, name string, data []byte, at int64) {
	const latest = 1<<33 - 1 // seconds: what the field has room for
	header := make([]byte, block)
	copy(header, name)
	copy(header[100:], fmt.Sprintf("%07o\x00%07o\x00%07o\x00%011o\x00%011o\x00        0", 0o644, 0, 0, len(data), min(max(at/1000, 0), latest)))
	copy(header[257:], "ustar  ")
	sum := 0
	for _, c := range header {
		sum += int(c)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00\x00", sum))
	out.Write(header)
	out.Write(data)
	out.Write(make([]byte, (block-len(data)%block)%block))
}
