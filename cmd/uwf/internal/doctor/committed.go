package doctor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Commit is one that the files are compared with: HEAD, or the default branch as it was
// fetched last.
type Commit struct {
	Name  string // HEAD, origin/main
	Blobs map[string]wire.ID
}

// definitionFolders hold workflow definitions.
func definitionFolders() []string { return []string{".uwf/workflows", ".workflow", ".workflows"} }

// checkCommitted is whether jobs get the files that lie here: they read those of the default
// branch.
func (e *examination) checkCommitted() (found Finding) {
	files := append([]string{configFile}, e.listFiles(definitionFolders())...)
	if e.flow != nil {
		files = append([]string{e.flow.path}, files...)
	}
	for n, c := range e.o.Commits {
		var differ []string
		for _, name := range files {
			data, err := e.readFile(name)
			if err != nil {
				continue // said where it is used, or no file
			}
			found = findOK("the files are those of %s", c.Name)
			if !c.Has(name, data) {
				differ = append(differ, name)
			}
		}
		if len(differ) == 0 {
			continue
		}
		detail := fmt.Sprintf("jobs do not have what stands here in %s: it is not committed", strings.Join(differ, ", "))
		fix := AddCommand(e.o.Below, differ...) + " && git commit"
		if n > 0 {
			branch := strings.TrimPrefix(c.Name, e.o.RemoteName+"/")
			detail = fmt.Sprintf("jobs do not have what stands here in %s: %s, as it was fetched last, has not", strings.Join(differ, ", "), c.Name)
			fix = fmt.Sprintf("bring it to %s, by a pull request or git push %s HEAD:%[1]s; if that was done: git fetch %[2]s", branch, e.o.RemoteName)
		}
		return findLacking(detail, fix)
	}
	return found
}

// Has says whether the commit has that content of a file, whatever its line ends.
func (c Commit) Has(name string, data []byte) bool {
	id, there := c.Blobs[name]
	return there && (id == blobID(data) || id == blobID(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))))
}

func blobID(data []byte) wire.ID { return wire.NewObject(plumbing.BlobObject, data).ID }

// ReadCommits reads what the repository here has committed, and what its default branch had
// when it was fetched last.
func ReadCommits(ctx context.Context, f *app.Factory, remote string) []Commit {
	var out []Commit
	for _, names := range [][]string{{"HEAD"}, {"refs/remotes/" + remote + "/HEAD", "refs/remotes/" + remote + "/main", "refs/remotes/" + remote + "/master"}} {
		for _, ref := range names {
			if c, ok := readCommit(ctx, f, ref); ok {
				out = append(out, c)
				break
			}
		}
	}
	return out
}

// ReadBranches reads the names of the branches of the repository here, and of the remote as it was
// fetched last. Of a repository that names its objects by SHA-256 it says so.
func ReadBranches(ctx context.Context, f *app.Factory, remote string) (map[string]wire.ID, error) {
	if format, err := app.GitHere(ctx, f, "rev-parse", "--show-object-format"); err == nil && format == "sha256" {
		return nil, wire.ErrSHA256
	}
	fetched := "refs/remotes/" + remote + "/"
	text, _ := app.GitHere(ctx, f, "for-each-ref", "--format=%(objectname) %(refname)", layout.Heads, fetched) // without git there are none
	out := map[string]wire.ID{}
	for line := range strings.Lines(text) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if branch, ok := strings.CutPrefix(name, fetched); ok {
			name = layout.Heads + branch
		}
		out[name] = plumbing.NewHash(id)
	}
	return out, nil
}

// readCommit reads names and hashes alone: no filter or hook of the repository runs.
func readCommit(ctx context.Context, f *app.Factory, ref string) (Commit, bool) {
	args := append([]string{"ls-tree", "-r", "-z", "--full-tree", ref, "--", configFile}, append(workflowFolders(), definitionFolders()...)...)
	text, err := app.GitHere(ctx, f, args...)
	if err != nil {
		return Commit{}, false
	}
	c := Commit{Name: ref, Blobs: map[string]wire.ID{}}
	if short, err := app.GitHere(ctx, f, "rev-parse", "--abbrev-ref", ref); err == nil && ref != "HEAD" {
		c.Name = short
	}
	for line := range strings.SplitSeq(text, "\x00") {
		about, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(about); len(f) == 3 && slices.Contains([]string{"100644", "100755"}, f[0]) {
			c.Blobs[name] = plumbing.NewHash(f[2])
		}
	}
	return c, true
}

// checkSandbox is what keeps agents in their place here.
func (e *examination) checkSandbox() Finding {
	text := strings.Join(e.o.Sandbox, "; ")
	switch {
	case text == "":
		return Finding{}
	case e.o.SandboxOK:
		return findOK("%s", text)
	}
	return findLacking(text, "run agents on Linux 5.13 or later, or as root with a user of their own; until then agents run unconfined, or not at all where sandbox says auto or require")
}
