package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// textNodes are string nodes by hash.
func textNodes(t *testing.T, texts ...string) map[node.Hash]node.Node {
	t.Helper()
	out := map[node.Hash]node.Node{}
	for _, text := range texts {
		n, h, err := node.New(node.String, text, time.UnixMilli(1))
		if err != nil {
			t.Fatal(err)
		}
		out[h] = n
	}
	return out
}

// TestNodes: what the parent writes the child finds again, long lines too.
func TestNodes(t *testing.T) {
	nodes := textNodes(t, "", "one", "two\nlines", strings.Repeat("long ", 100_000), "last")
	dir := t.TempDir()
	if err := WriteContext(dir, task.Task{Nodes: gitcas.Nodes{{}: nodes}, Prompt: "p"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	c, err := LoadContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	for h, want := range nodes {
		if got, err := c.Get(h); err != nil || got.Payload != want.Payload || got.Type != want.Type {
			t.Errorf("%s is %v, %v", h, got, err)
		}
	}
	for h, says := range map[node.Hash]string{
		"": `"" is no node hash`, "x": `"x" is no node hash`, "../context.js": `"../context.js" is no node hash`,
		"0000000000000": "node 0000000000000 is not in the agent's context",
	} {
		if _, err := c.Get(h); !errors.Is(err, node.ErrNotFound) || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%q: %v, want %q", h, err, says)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%d files (%v): their number must not grow with the thread", len(entries), err)
	}
}

// TestNodesOfSteps: by one hash steps may refer to different nodes. None is taken for
// another one.
func TestNodesOfSteps(t *testing.T) {
	const h, both, one, two = node.Hash("0000000000000"), node.Hash("0000000000003"), node.Hash("0000000000001"), node.Hash("0000000000002")
	text := func(s string) node.Node { return node.Node{Type: node.String, Payload: s} }
	dir := t.TempDir()
	if err := WriteContext(dir, task.Task{Nodes: gitcas.Nodes{
		{}:                     {node.String: text("shared")},
		{Thread: "t", Of: one}: {h: text("first"), both: text("same"), node.String: text("not this one")},
		{Thread: "t", Of: two}: {h: text("second"), both: text("same")},
		{Thread: "t"}:          {one: text("a record")},
	}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	c, err := LoadContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of, h node.Hash
		want  string
		err   error
	}{
		{one, h, "first", nil}, {two, h, "second", nil}, {"", h, "", ErrSeveral}, {"", both, "same", nil},
		{both, h, "", node.ErrNotFound}, {"", node.String, "shared", nil}, {one, node.String, "shared", nil}, {two, one, "a record", nil},
	} {
		n, err := c.GetOf(tt.of, tt.h)
		if !errors.Is(err, tt.err) || tt.err == nil && n.Payload != tt.want {
			t.Errorf("%s of %q is %v, %v", tt.h, tt.of, n.Payload, err)
		}
	}
}

// TestBadNodes: a folder that uwf did not write is an error, and never a wait.
func TestBadNodes(t *testing.T) {
	for _, file := range []string{"{", "\n", `{"hash":"0000000000000","of":"0000000000001","type":"`, `{"hash":"0000000000000`, `{"hash":"../../../etc/","type":"`, "null\n", `{"hash": "0000000000000"}`} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, taskFile), []byte("{}"), 0o600), os.WriteFile(filepath.Join(dir, nodesFile), []byte(file), 0o600)); err != nil {
			t.Fatal(err)
		}
		c, err := LoadContext(dir)
		if err == nil { // what a line holds shows when it is asked for
			_, err = c.Get("0000000000000")
		}
		if err == nil || errors.Is(err, node.ErrNotFound) {
			t.Errorf("%q: %v", file, err)
		}
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, taskFile), []byte("{}"), 0o600), syscall.Mkfifo(filepath.Join(dir, nodesFile), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadContext(dir); err == nil {
		t.Error("a FIFO was taken")
	}
}

func TestIndexNodesRefuses(t *testing.T) {
	long := `{"hash":"0000000000000"` + strings.Repeat(" ", maxContextFile)
	if _, err := indexNodes([]byte(long)); err == nil || !strings.Contains(err.Error(), "line 1 of nodes.jsonl is no node") {
		t.Errorf("a line without end: %v", err)
	}
}

// TestNodesStay: what an agent has loaded stays, whatever becomes of the file.
func TestNodesStay(t *testing.T) {
	nodes := textNodes(t, "one")
	dir := t.TempDir()
	if err := errors.Join(WriteContext(dir, task.Task{Nodes: gitcas.Nodes{{}: nodes}}), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	c, err := LoadContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, nodesFile)
	if err := errors.Join(os.Chmod(file, 0o600), os.Truncate(file, 10)); err != nil {
		t.Fatal(err)
	}
	for h, want := range nodes {
		if got, err := c.Get(h); err != nil || got.Payload != want.Payload {
			t.Errorf("%s: %v, %v", h, got, err)
		}
	}
}

func FuzzNodes(f *testing.F) {
	f.Add([]byte(`{"hash":"0000000000000","type":"0000000000000","payload":1,"timestamp":1}` + "\n"))
	f.Add([]byte(`{"hash":"0000000000000","of":"0000000000001","type":"0000000000000","payload":1,"timestamp":1}` + "\n"))
	f.Add([]byte("{\"hash\":\"0000000000000\"\n\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		index, err := indexNodes(file)
		if err != nil {
			return
		}
		for h, lines := range index {
			for _, l := range lines {
				if got, of, _, err := node.DecodeLine(l.text); err == nil && (got != h || of != l.of) {
					t.Errorf("%q is indexed as %s of %q and reads as %s of %q", l.text, h, l.of, got, of)
				}
			}
		}
	})
}
