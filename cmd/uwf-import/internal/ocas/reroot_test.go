package ocas_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// unpackStore is the folder of a store that the TypeScript uwf wrote.
func unpackStore(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := ocastest.Unpack("../../testdata/stores/"+name+".tgz", dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// readFiles reads the node files of a folder, without a check.
func readFiles(t *testing.T, dir string) map[node.Hash]node.Node {
	t.Helper()
	out := map[node.Hash]node.Node{}
	files, err := filepath.Glob(dir + "/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := node.DecodeCBOR(b)
		if err != nil {
			t.Fatal(err)
		}
		m := v.(map[string]any)
		out[node.Hash(strings.TrimSuffix(filepath.Base(file), ".bin"))] = node.Node{Type: node.Hash(m["type"].(string)), Payload: m["payload"], Timestamp: m["timestamp"].(int64)}
	}
	return out
}

// collectReachable are the nodes that one reaches: by its type, and by every text that is a node's hash.
func collectReachable(all map[node.Hash]node.Node, from node.Hash, out map[node.Hash]bool) {
	n, there := all[from]
	if !there || out[from] {
		return
	}
	out[from] = true
	collectReachable(all, n.Type, out)
	node.MapStrings(n.Payload, func(s string) string { collectReachable(all, node.Hash(s), out); return s })
}

// nodesByFormerHash are the nodes of a re-rooted chain, by the hashes that they had.
func nodesByFormerHash(t *testing.T, c ocas.Chain) map[node.Hash]ocas.Node {
	t.Helper()
	now := map[node.Hash]ocas.Node{}
	for h, n := range known() {
		now[h] = ocas.Node{Hash: h, Node: n}
	}
	for _, p := range c.Parts {
		for _, n := range p.Nodes {
			if err := node.Verify(n.Hash, n.Node); err != nil {
				t.Error(err)
			}
			now[n.Hash] = n
		}
	}
	out := map[node.Hash]ocas.Node{}
	last := node.Hash("")
	for _, f := range c.Former {
		n, there := now[f.Hash]
		if !there || f.Former <= last {
			t.Errorf("%s, after %s, is called %s: there %v", f.Former, last, f.Hash, there)
		}
		out[f.Former], last = n, f.Former
	}
	return out
}

// TestRerooted: every node of the threads of 2026-05-18 is there, under its new hash, with
// the payload that it had but for references, and what a record lacked.
func TestRerooted(t *testing.T) {
	dir := unpackStore(t, "0518") + "/root"
	old := readFiles(t, dir+"/cas")
	src := ocas.New(known())
	src.AddFolder("0518", os.DirFS(dir))
	threads := src.Threads()
	if len(threads) != 4 {
		t.Fatalf("%d threads", len(threads))
	}
	prompts := map[string]bool{}
	for _, th := range threads {
		c, err := src.ReadChain(th.Head)
		if err != nil {
			t.Fatal(err)
		}
		now, all := nodesByFormerHash(t, c), map[node.Hash]bool{}
		collectReachable(old, th.Head, all)
		if len(all) != len(now) {
			t.Errorf("thread %s reaches %d nodes, %d have other hashes", th.ID, len(all), len(now))
		}
		for h := range all {
			compareRerooted(t, h, old[h], now)
		}
		if now[th.Head].Hash != c.Parts[len(c.Parts)-1].Head {
			t.Errorf("thread %s was at %s, which is called %s, and is at %s", th.ID, th.Head, now[th.Head].Hash, c.Parts[len(c.Parts)-1].Head)
		}
		s, err := record.ParseStart(c.Parts[0].Nodes[len(c.Parts[0].Nodes)-1].Node)
		if err != nil || s.Workflow != c.Workflow {
			t.Errorf("%+v, %v", s, err)
		}
		prompts[s.Prompt] = true
		if _, err := workflow.FromNode(src, c.Workflow); err != nil {
			t.Error(err)
		}
		src.Forget()
	}
	if want := map[string]bool{"Task active": true, "Task done": true, "Task killed": true, "Task started": true}; !reflect.DeepEqual(prompts, want) {
		t.Errorf("prompts %v", prompts)
	}
	flow, err := src.ReadWorkflow(src.Workflows()["solve-issue"].Hash)
	if err != nil || len(flow.Former) != 6 || !slices.ContainsFunc(flow.Nodes, func(n ocas.Node) bool { return n.Hash == flow.Hash }) {
		t.Errorf("%+v, %v", flow.Former, err)
	}
}

// compareRerooted compares a node with what became of it.
func compareRerooted(t *testing.T, h node.Hash, was node.Node, now map[node.Hash]ocas.Node) {
	t.Helper()
	is, there := now[h]
	renamed := func(s string) string {
		if n, ok := now[node.Hash(s)]; ok {
			return string(n.Hash)
		}
		return s
	}
	_, builtin := node.Builtin()[is.Hash]
	if !there || !builtin && is.Node.Timestamp != was.Timestamp {
		t.Fatalf("%s: there %v, made at %d, was at %d", h, there, is.Node.Timestamp, was.Timestamp)
	}
	payload, _ := was.Payload.(map[string]any)
	typ, want := now[was.Type].Hash, node.MapStrings(was.Payload, renamed)
	switch fields, _ := want.(map[string]any); {
	case was.Type == "56GP9CC0KVQF8": // a schema
		typ, want = node.MetaSchema, was.Payload
	case payload["agent"] != nil:
		typ = record.StepSchema
		maps.Copy(fields, map[string]any{"cwd": "", "edgePrompt": "", "startedAtMs": was.Timestamp, "completedAtMs": was.Timestamp, "assembledPrompt": nil})
		if _, said := is.Node.Payload.(map[string]any)["assembledPrompt"]; !said {
			delete(fields, "assembledPrompt")
		}
	case payload["prompt"] != nil:
		typ, fields["cwd"] = record.StartSchema, ""
	case payload["graph"] != nil:
		typ, fields["dialect"] = record.OwnWorkflowSchema, "conditions"
		for _, from := range []string{"$START", "planner", "developer"} { // a list with one edge says the same
			to := fields["graph"].(map[string]any)[from].([]any)[0].(map[string]any)["role"]
			fields["graph"].(map[string]any)[from] = map[string]any{"_": map[string]any{"role": to, "prompt": "", "location": nil}}
		}
	}
	if is.Node.Type != typ || !reflect.DeepEqual(is.Node.Payload, want) {
		t.Errorf("%s became %s of type %s\n%s\nwant %s\n%s", h, is.Hash, is.Node.Type, node.Text(is.Node.Payload), typ, node.Text(want))
	}
}

// TestKept: what is below today's meta-schema keeps its hashes.
func TestKept(t *testing.T) {
	for name, dir := range map[string]string{"0604": "/ocas", "030": "/ocas", "040": "/ocas/nodes"} {
		dir = unpackStore(t, name) + dir
		src, records := ocas.New(known()), 0
		src.AddFolder(name, os.DirFS(dir))
		for h, n := range readFiles(t, dir) {
			if !record.IsRecord(n.Type) {
				continue
			}
			records++
			c, err := src.ReadChain(h)
			if err != nil || len(c.Former) > 0 || c.Parts[len(c.Parts)-1].Head != h {
				t.Errorf("%s: %s: %v, %+v", name, h, err, c.Former)
			}
		}
		if records < 5 {
			t.Errorf("%s: %d records", name, records)
		}
	}
}

// openEarly makes a Source of a store.
func openEarly(t *testing.T, s *ocastest.EarlyStore) *ocas.Source {
	t.Helper()
	dir, src := t.TempDir(), ocas.New(known())
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	src.AddFolder("early", os.DirFS(dir))
	return src
}

// TestGenerations: threads of all forms of that era are read, also where a thread's nodes
// are below several meta-schemas.
func TestGenerations(t *testing.T) {
	const prompt = "Mend it."
	for g := ocastest.FirstGeneration; g <= ocastest.MixedGeneration; g++ {
		s := ocastest.NewEarly("json-cas JSON Schema meta-schema")
		head := s.PutThread(g, prompt, false, true)
		src := openEarly(t, s)
		c, err := src.ReadChain(head)
		if err != nil {
			t.Errorf("%d: %v", g, err)
			continue
		}
		def, err := workflow.FromNode(src, c.Workflow)
		if err != nil {
			t.Errorf("%d: %v", g, err)
			continue
		}
		want := map[ocastest.Generation]workflow.Dialect{1: workflow.Conditions, 2: workflow.Conditions, 3: workflow.Architecture, 4: workflow.StatusMap, 5: workflow.StatusMap}[g]
		last := c.Parts[len(c.Parts)-1].Step
		if len(c.Parts) != 5 || def.Dialect != want || len(def.Roles) != 2 || last.Role != "reviewer" || last.Agent != "uwf-hermes" {
			t.Errorf("%d: %d parts, %+v, %+v", g, len(c.Parts), def, last)
		}
		at := s.Nodes[head].Timestamp
		times := [2]int64{at, at}
		cwd, edge, assembled := "", "", ""
		switch g {
		case ocastest.FourthGeneration:
			edge = "Go on."
		case ocastest.MixedGeneration:
			times, cwd, assembled = [2]int64{8000, 9000}, "/home/someone/p", "all of the prompt"
		}
		if [2]int64{last.StartedAtMs, last.CompletedAtMs} != times || last.Cwd != cwd || last.EdgePrompt != edge {
			t.Errorf("%d: %+v", g, last)
		}
		if last.AssembledPrompt != nil {
			n, err := src.Get(*last.AssembledPrompt)
			if err != nil || n.Payload != assembled {
				t.Errorf("%d: %v, %v", g, n, err)
			}
		} else if assembled != "" {
			t.Errorf("%d: the prompt is lost", g)
		}
		nodesByFormerHash(t, c)
	}
}

// TestMixedMetaSchemas: the output of a thread of today is below a former meta-schema.
func TestMixedMetaSchemas(t *testing.T) {
	s := ocastest.NewEarly("another meta-schema")
	today := sample(t)
	maps.Copy(s.Nodes, today.Nodes)
	head := today.Heads[ocastest.Active]
	payload := maps.Clone(today.Nodes[head].Payload.(map[string]any))
	payload["detail"] = string(s.Put(s.Put(s.Meta, map[string]any{"type": "integer"}), 7))
	head = s.Put(record.StepSchema, payload)
	c, err := openEarly(t, s).ReadChain(head)
	if err != nil || len(c.Parts) != 3 {
		t.Fatalf("%d parts, %v", len(c.Parts), err)
	}
	now := nodesByFormerHash(t, c)
	if len(now) != 4 || now[head].Node.Type != record.StepSchema || c.Parts[1].Head != *c.Parts[2].Step.Prev || c.Parts[2].Step.Detail == node.Hash(payload["detail"].(string)) {
		t.Errorf("%v", c.Former)
	}
}

// TestRerootRefused: what is wrong with nodes below a former meta-schema keeps their thread
// out.
func TestRerootRefused(t *testing.T) {
	// with puts a step in the place of the last one, with a field changed.
	with := func(s *ocastest.EarlyStore, head node.Hash, field string, value any) node.Hash {
		p := maps.Clone(s.Nodes[head].Payload.(map[string]any))
		p[field] = value
		return s.Put(s.Nodes[head].Type, p)
	}
	ofStep := func(s *ocastest.EarlyStore, head node.Hash, field string) node.Hash {
		return node.Hash(s.Nodes[head].Payload.(map[string]any)[field].(string))
	}
	list := func(s *ocastest.EarlyStore) node.Hash {
		return s.Put(s.Meta, map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{map[string]any{"format": "cas_ref"}, map[string]any{"type": "integer"}}}})
	}
	for name, tc := range map[string]struct {
		change func(s *ocastest.EarlyStore, head node.Hash) node.Hash
		want   error
		says   string
	}{
		"no output": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			delete(s.Nodes, ofStep(s, head, "output"))
			return head
		}, node.ErrNotFound, ".bin is not there"},
		"no meta-schema": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			delete(s.Nodes, s.Meta)
			return head
		}, node.ErrNotFound, ".bin is not there"},
		"a flipped bit": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			h := ofStep(s, head, "detail")
			s.Nodes[h] = node.Node{Type: s.Nodes[h].Type, Payload: "raw output of someone"}
			return head
		}, node.ErrWrongHash, "content and hash differ"},
		"another meta-schema of that name": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			s.Nodes[s.Meta] = node.Node{Type: s.Meta, Payload: map[string]any{"type": "object"}}
			return head
		}, node.ErrWrongHash, "content and hash differ"},
		"output that fits no schema": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			return with(s, head, "output", string(s.Put(s.Nodes[ofStep(s, head, "output")].Type, map[string]any{"summary": int64(7)})))
		}, nil, "/summary: must be string"},
		"a step that fits no schema": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			p := maps.Clone(s.Nodes[head].Payload.(map[string]any))
			p["role"] = int64(7)
			ref := map[string]any{"type": "string", "format": "cas_ref"}
			return s.Put(s.Put(s.Meta, map[string]any{"type": "object", "properties": map[string]any{"role": map[string]any{"type": "string"}, "start": ref, "prev": ref, "output": ref, "detail": ref}}), p)
		}, nil, "/role: must be string"},
		"a schema that refers to others": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			return with(s, head, "output", string(s.Put(s.Put(s.Meta, map[string]any{"$ref": "#"}), "x")))
		}, nil, "schemas can't refer to other schemas"},
		"a type that is no schema": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			return with(s, head, "output", string(s.Put(ofStep(s, head, "detail"), "x")))
		}, node.ErrNotSchema, "is used as a type"},
		"a field of nobody": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			p := maps.Clone(s.Nodes[head].Payload.(map[string]any))
			p["mood"] = "good"
			return s.Put(s.Put(s.Meta, map[string]any{"type": "object"}), p)
		}, ocas.ErrOtherSchema, `it has the field "mood"`},
		"a head that is no record": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			return ofStep(s, head, "detail")
		}, ocas.ErrOtherSchema, "of type "},
		"a workflow that is none": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			start := ofStep(s, head, "start")
			p := maps.Clone(s.Nodes[start].Payload.(map[string]any))
			p["workflow"] = string(ofStep(s, head, "detail"))
			return s.Put(s.Nodes[start].Type, p)
		}, workflow.ErrNoWorkflow, "its workflow: "},
		"a workflow without instructions": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			start := ofStep(s, head, "start")
			p := maps.Clone(s.Nodes[start].Payload.(map[string]any))
			flow := s.Nodes[ofStep(s, start, "workflow")]
			f := maps.Clone(flow.Payload.(map[string]any))
			f["roles"] = map[string]any{"developer": map[string]any{"description": "d", "systemPrompt": "", "outputSchema": string(s.Put(s.Meta, map[string]any{"type": "object"}))}}
			p["workflow"] = string(s.Put(flow.Type, f))
			return s.Put(s.Nodes[start].Type, p)
		}, workflow.ErrNoWorkflow, "`systemPrompt` of role \"developer\" is empty"},
		"a step of another start": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			return with(s, head, "start", string(s.PutThread(ocastest.FirstGeneration, "another")))
		}, nil, "belongs to another thread"},
		"deep details": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			typ := list(s)
			h := s.Put(typ, []any{})
			for range 1000 {
				h = s.Put(typ, []any{string(h)})
			}
			return with(s, head, "detail", string(h))
		}, node.ErrCircle, "or deeper than 1000"},
		"details in a circle": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			typ := s.Put(s.Meta, map[string]any{"type": "object", "properties": map[string]any{"to": map[string]any{"format": "cas_ref"}}})
			const first node.Hash = "0123456789ABC"
			second := s.Put(typ, map[string]any{"to": string(first)})
			payload := func(text string) any { return map[string]any{"to": string(second), "zz": text} }
			text, err := collide.Text(first, typ, payload)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Put(typ, payload(text)); got != first {
				t.Fatal(got)
			}
			return with(s, head, "detail", string(first))
		}, node.ErrCircle, "refer to one another in a circle"},
		"steps in a circle": {func(s *ocastest.EarlyStore, head node.Hash) node.Hash {
			payload := maps.Clone(s.Nodes[head].Payload.(map[string]any))
			const first node.Hash = "0123456789ABC"
			payload["prev"] = string(first)
			second := s.Put(s.Nodes[head].Type, payload)
			build := func(text string) any {
				p := maps.Clone(payload)
				p["prev"], p["output"], p["detail"] = string(second), "", ""
				return map[string]any{"start": p["start"], "prev": string(second), "zzzzzz": text}
			}
			text, err := collide.Text(first, s.Nodes[head].Type, build)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Put(s.Nodes[head].Type, build(text)); got != first {
				t.Fatal(got)
			}
			return second
		}, nil, "the chain runs in a circle"},
	} {
		t.Run(name, func(t *testing.T) {
			s := ocastest.NewEarly("json-cas JSON Schema meta-schema")
			head := tc.change(s, s.PutThread(ocastest.FirstGeneration, "Mend it.", true))
			_, err := openEarly(t, s).ReadChain(head)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %s", err, tc.says)
			}
		})
	}
}
