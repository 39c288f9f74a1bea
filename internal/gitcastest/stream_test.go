package gitcastest

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// repository has two branches that share a commit, a merge, a root of its own, and
// files that come and go.
func repository(t *testing.T) *wiretest.Memory {
	t.Helper()
	mem := wiretest.NewMemory(wiretest.MemoryOptions{})
	put := func(typ plumbing.ObjectType, data string) wire.ID {
		o := wire.NewObject(typ, []byte(data))
		mem.AddObjects(o)
		return o.ID
	}
	n := 0
	commit := func(files map[string]string, parents ...wire.ID) wire.ID {
		var entries, below []gitobj.Entry
		for name, text := range files {
			e := gitobj.Entry{Name: name, Mode: filemode.Regular, ID: put(plumbing.BlobObject, text)}
			if inner, ok := strings.CutPrefix(name, "dir/"); ok {
				e.Name, e.Mode = inner, filemode.Executable
				below = append(below, e)
				continue
			}
			entries = append(entries, e)
		}
		if len(below) > 0 {
			data, err := gitobj.EncodeTree(below)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, gitobj.Entry{Name: "dir", Mode: filemode.Dir, ID: put(plumbing.TreeObject, string(data))})
		}
		tree, err := gitobj.EncodeTree(entries)
		if err != nil {
			t.Fatal(err)
		}
		n++
		who := gitobj.Signature{Name: "A B", Email: "a@example.com", When: time.Unix(1_700_000_000+int64(n), 0).In(time.FixedZone("", 5400))}
		data, err := gitobj.EncodeCommit(gitobj.Commit{
			Tree: put(plumbing.TreeObject, string(tree)), Parents: parents, Author: who, Committer: who, Message: "commit\n\nblob\nmark :1\ndata 3",
		})
		if err != nil {
			t.Fatal(err)
		}
		return put(plumbing.CommitObject, string(data))
	}
	first := commit(map[string]string{"a": "a", "dir/b": "\n\nb", "c": ""})
	left := commit(map[string]string{"a": "A\n", "dir/b": "\n\nb"}, first)
	right := commit(map[string]string{"a": "a", "dir/b": "b", "d": "commit refs/heads/x\n"}, first)
	mem.SetRef("refs/heads/one", commit(map[string]string{"a": "merged"}, left, right))
	mem.SetRef("refs/heads/two", right)
	mem.SetRef("refs/uwf/other", commit(nil))
	return mem
}

func TestRoundTrip(t *testing.T) {
	mem := repository(t)
	text, err := Export(mem)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Import(text, wiretest.MemoryOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !maps.Equal(mem.Refs(), back.Refs()) {
		t.Errorf("refs %v, want %v\n%s", back.Refs(), mem.Refs(), text)
	}
	if again, err := Export(back); err != nil || !bytes.Equal(again, text) {
		t.Errorf("exported again: %v\n%s", err, again)
	}
}

// TestGit: git reads it as we do.
func TestGit(t *testing.T) {
	testmode.NeedGit(t)
	mem, dir := repository(t), t.TempDir()
	text, err := Export(mem)
	if err != nil {
		t.Fatal(err)
	}
	run := func(in []byte, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin, cmd.Env = dir, bytes.NewReader(in), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run(nil, "init", "-q", "--bare")
	run(text, "fast-import", "--quiet", "--done")
	got := run(nil, "for-each-ref", "--format=%(objectname) %(refname)")
	for name, id := range mem.Refs() {
		if !strings.Contains(got, id.String()+" "+name+"\n") {
			t.Errorf("%s should be %s; git has\n%s", name, id, got)
		}
	}
}

func TestBadStreams(t *testing.T) {
	for _, s := range []string{
		"", "done", "nonsense\n", "blob\n", "blob\nmark :1\ndata 9\nx\ndone\n", "blob\nmark :1\ndata x\n", "reset a\nfrom :9\n",
		"commit refs/heads/a\nmark :1\nauthor x\ncommitter x\ndata 0\n\n\ndone\n",
		"blob\nmark :1\ndata 1\nx\ncommit refs/heads/a\nmark :2\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\ndata 0\n\nM 100644 :1 ../a\n\ndone\n",
		"commit refs/heads/a\nmark :2\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\ndata 0\n\nfrom :3\n\ndone\n",
	} {
		if _, err := Import([]byte(s), wiretest.MemoryOptions{}); err == nil {
			t.Errorf("%q was read", s)
		}
	}
}
