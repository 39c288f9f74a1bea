// Package ocastest makes what the TypeScript uwf leaves on a disk, for tests: a
// folder of nodes, a storage root with its lists, and a bundle of the same.
package ocastest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// The threads of a Store, by what they are.
const (
	Active    = "06F2S0000000000000000000G0" // two steps, sent back
	Suspended = "06F2S0000000000000000000G4" // one step, which asks a person
	Ended     = "06F2S0000000000000000000G8"
	Cancelled = "06F2S0000000000000000000GC" // no step
)

// Name is the registered workflow's.
const Name = "solve"

// Store is what is in the folders.
type Store struct {
	Nodes    map[node.Hash]node.Node
	Heads    map[string]node.Hash // by thread
	Workflow node.Hash
	err      error
}

var at = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

// New makes a store with the threads above.
func New() (*Store, error) {
	s := &Store{Nodes: map[node.Hash]node.Node{}, Heads: map[string]node.Hash{}}
	for h, n := range node.Builtin() {
		s.Nodes[h] = n
	}
	for h, n := range record.Schemas() {
		if h != record.OwnStartSchema && !record.IsOwnStep(h) {
			s.Nodes[h] = n
		}
	}
	developer, reviewer := s.putWorkflow()
	done := map[string]any{"$status": "done", "summary": "first"}
	stuck := map[string]any{"$status": "stuck", "summary": "Which one?"}
	s.putThread(Active, "Mend it.", said{"developer", developer, done}, said{"reviewer", reviewer, map[string]any{"$status": "rejected"}})
	s.putThread(Suspended, "Ask.", said{"developer", developer, stuck})
	s.putThread(Ended, "End it.", said{"developer", developer, done}, said{"reviewer", reviewer, map[string]any{"$status": "approved"}})
	s.putThread(Cancelled, "Never mind.")
	return s, s.err
}

func (s *Store) putNode(typ node.Hash, payload any) node.Hash {
	n, h, err := node.New(typ, payload, at)
	s.err = errors.Join(s.err, err)
	s.Nodes[h] = n
	return h
}

// putWorkflow is the workflow; it returns the types of the roles' outputs.
func (s *Store) putWorkflow() (developer, reviewer node.Hash) {
	schema := func(title string, statuses ...any) node.Hash {
		return s.putNode(node.MetaSchema, map[string]any{
			"title": title, "type": "object", "required": []any{"$status"},
			"properties": map[string]any{"$status": map[string]any{"enum": statuses}, "summary": map[string]any{"type": "string"}},
		})
	}
	role := func(out node.Hash) map[string]any {
		return map[string]any{"description": "d", "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", "frontmatter": string(out)}
	}
	edge := func(to, prompt string) map[string]any {
		return map[string]any{"role": to, "prompt": prompt, "location": nil}
	}
	developer, reviewer = schema("solve.developer", "done", "stuck"), schema("solve.reviewer", "approved", "rejected")
	s.Workflow = s.putNode(record.WorkflowSchema, map[string]any{
		"name": Name, "description": "d", "roles": map[string]any{"developer": role(developer), "reviewer": role(reviewer)},
		"graph": map[string]any{
			"$START":    map[string]any{"_": edge("developer", "Begin.")},
			"developer": map[string]any{"done": edge("reviewer", "Check {{{summary}}}"), "stuck": edge("$SUSPEND", "{{{summary}}}")},
			"reviewer":  map[string]any{"approved": edge("$END", "Good."), "rejected": edge("developer", "Again.")},
		},
	})
	return developer, reviewer
}

type said struct {
	role   string
	typ    node.Hash
	output map[string]any
}

func (s *Store) putThread(id, prompt string, steps ...said) {
	start := s.putNode(record.StartSchema, map[string]any{"workflow": string(s.Workflow), "prompt": prompt, "cwd": "/home/someone/p"})
	s.Heads[id] = start
	var prev any
	for i, st := range steps {
		turn := s.putNode(record.BuiltinTurnSchema, map[string]any{"role": "assistant", "content": "turn of " + id, "toolCalls": nil, "reasoning": nil})
		detail := s.putNode(record.BuiltinDetailSchema, map[string]any{"sessionId": id, "model": "m", "duration": 1000 + i, "turnCount": 1, "turns": []any{string(turn)}})
		h := s.putNode(record.StepSchema, map[string]any{
			"start": string(start), "prev": prev, "role": st.role, "output": string(s.putNode(st.typ, st.output)), "detail": string(detail),
			"agent": "uwf-builtin", "edgePrompt": "Go on.", "startedAtMs": at.UnixMilli(), "completedAtMs": at.UnixMilli() + 1000, "cwd": "/home/someone/p",
			"assembledPrompt": string(s.putNode(node.String, fmt.Sprintf("prompt %d of %s", i, id))),
		})
		prev, s.Heads[id] = string(h), h
	}
}

// File is a node's file.
func (s *Store) File(h node.Hash) ([]byte, error) {
	n := s.Nodes[h]
	return node.EncodeCBOR(map[string]any{"type": string(n.Type), "payload": n.Payload, "timestamp": n.Timestamp})
}

// Write makes the folders nodes and root, and the file bundle.tar, below dir.
func (s *Store) Write(dir string) error {
	nodes, root := filepath.Join(dir, "nodes"), filepath.Join(dir, "root")
	errs := []error{os.MkdirAll(nodes, 0o700), os.MkdirAll(root, 0o700)}
	for h := range s.Nodes {
		b, err := s.File(h)
		errs = append(errs, err, os.WriteFile(filepath.Join(nodes, string(h)+".bin"), b, 0o600))
	}
	b, err := s.Bundle()
	errs = append(errs, err,
		os.WriteFile(filepath.Join(dir, "bundle.tar"), b, 0o600),
		os.WriteFile(filepath.Join(root, "threads.yaml"), []byte(s.ThreadsFile()), 0o600),
		os.WriteFile(filepath.Join(root, "history.jsonl"), []byte(s.HistoryFile()), 0o600),
		os.WriteFile(filepath.Join(root, "workflows.yaml"), []byte(Name+": "+string(s.Workflow)+"\n"), 0o600))
	return errors.Join(errs...)
}

// ThreadsFile is threads.yaml.
func (s *Store) ThreadsFile() string {
	return fmt.Sprintf("%s: %s\n%s:\n  head: %s\n  suspendedRole: developer\n  suspendMessage: Which one?\n", Active, s.Heads[Active], Suspended, s.Heads[Suspended])
}

// HistoryFile is history.jsonl.
func (s *Store) HistoryFile() string {
	line := func(id, reason string) string {
		return fmt.Sprintf(`{"thread":"%s","workflow":"%s","head":"%s","completedAt":%d,"reason":%s}`+"\n", id, s.Workflow, s.Heads[id], at.UnixMilli(), reason)
	}
	return line(Ended, `"completed"`) + line(Cancelled, `"cancelled"`)
}

// Bundle is what `ocas export` makes of it.
func (s *Store) Bundle() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var errs []error
	file := func(name string, data []byte) {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}))
		_, err := w.Write(data)
		errs = append(errs, err)
	}
	for _, h := range slices.Sorted(maps.Keys(s.Nodes)) {
		b, err := s.File(h)
		errs = append(errs, err)
		file("cas/"+string(h)+".bin", b)
	}
	var vars strings.Builder
	variable := func(name string, value node.Hash, tags map[string]string) {
		b, err := json.Marshal(map[string]any{"name": name, "schema": record.StepSchema, "value": value, "created": 1, "updated": 2, "tags": tags, "labels": []string{}})
		errs = append(errs, err)
		vars.Write(append(b, '\n'))
	}
	variable("@uwf/thread/"+Active, s.Heads[Active], nil)
	variable("@uwf/thread/"+Suspended, s.Heads[Suspended], map[string]string{"status": "suspended", "suspendedRole": "developer", "suspendMessage": "Which one?"})
	variable("@uwf/thread/"+Ended, s.Heads[Ended], map[string]string{"status": "completed", "completedAt": fmt.Sprint(at.UnixMilli())})
	variable("@uwf/thread/"+Cancelled, s.Heads[Cancelled], map[string]string{"status": "cancelled", "completedAt": fmt.Sprint(at.UnixMilli())})
	variable("@uwf/registry/"+Name, s.Workflow, nil)
	variable("@ocas/template/text/x", s.Workflow, nil)
	file("vars.jsonl", []byte(vars.String()))
	file("tags.jsonl", nil)
	errs = append(errs, w.Close())
	return out.Bytes(), errors.Join(errs...)
}
