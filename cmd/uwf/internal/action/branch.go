package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/lists"
	"gopkg.in/yaml.v3"
)

// What is taken of the default branch at most.
const (
	maxFile  = 1 << 20 // bytes of a file
	maxTotal = 16 << 20
	maxFiles = 2_000
	maxDepth = 12 // folders below the top
)

// branch is the tip of the repository's default branch, read over the wire: what jobs
// do is said there and nowhere else. It is read as hostile all the same.
type branch struct {
	Name   string // short
	Commit wire.ID
	remote wire.Remote
	root   []gitobj.Entry
}

// openBranch finds the default branch. Guess is the name that the event gives; it is
// only there to save a request.
func openBranch(ctx context.Context, remote wire.Remote, guess string) (*branch, error) {
	ask := []string{"HEAD"}
	if guess != "" && !strings.ContainsAny(guess, " ~^:?*[\\") {
		ask = append(ask, "refs/heads/"+guess)
	}
	l, err := remote.List(ctx, ask...)
	head := l.Head
	if tip := l.Refs[head]; err == nil && head != "" && tip.IsZero() { // the guess was wrong
		l, err = remote.List(ctx, head)
	}
	tip, ok := l.Refs[head]
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the default branch: %w", err)
	case head == "":
		return nil, app.Usagef("the repository has no default branch yet: push a first commit, with .uwf/ in it (uwf init writes it)")
	case !ok:
		return nil, fmt.Errorf("look for the default branch: %s is gone; run the job again", head)
	}
	b := &branch{Name: strings.TrimPrefix(head, "refs/heads/"), Commit: tip, remote: remote}
	objects, err := remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1, Filter: "tree:1"})
	var commit gitobj.Commit
	if err == nil {
		commit, err = gitobj.DecodeCommit(objects[tip].Data)
	}
	if err == nil && commit.Tree != wire.EmptyTree {
		b.root, err = b.readTree(ctx, objects, commit.Tree)
	}
	if err != nil {
		return nil, fmt.Errorf("read the default branch %s: %w", b.Name, err)
	}
	return b, nil
}

// readTree reads a folder, which is fetched where it did not come with others.
func (b *branch) readTree(ctx context.Context, objects wire.Objects, id wire.ID) ([]gitobj.Entry, error) {
	o, ok := objects[id]
	if !ok {
		more, err := b.remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{id}, Depth: 1, Filter: "blob:none"})
		if err != nil {
			return nil, err
		}
		o = more[id]
	}
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", id, err)
	}
	return entries, nil
}

// copyTo writes the definitions, the settings at that path, and more folders of the top,
// below dir.
func (b *branch) copyTo(ctx context.Context, dir, settings string, more ...string) error {
	tops := append([]string{topOf(settings)}, more...)
	tops = append(tops, lists.Map(workflow.Folders("."), func(f string) string { return topOf(path.Clean(f)) })...)
	var take []gitobj.Entry
	var wants []wire.ID
	for _, e := range b.root {
		if slices.Contains(tops, e.Name) {
			take = append(take, e)
			if e.Mode != filemode.Submodule { // its commit is in another repository
				wants = append(wants, e.ID)
			}
		}
	}
	objects := wire.Objects{}
	if len(wants) > 0 {
		slices.SortFunc(wants, func(a, b wire.ID) int { return strings.Compare(a.String(), b.String()) })
		var err error
		if objects, err = b.remote.Fetch(ctx, wire.FetchRequest{Wants: slices.Compact(wants), Depth: 1}); err != nil {
			return fmt.Errorf("read the definitions of the default branch %s: %w", b.Name, err)
		}
	}
	c := copying{b: b, objects: objects}
	if err := c.addEntries("", take, 0); err != nil {
		return err
	}
	return workspace.Apply(dir, c.files)
}

func topOf(p string) string {
	top, _, _ := strings.Cut(p, "/")
	return top
}

// copying is one copyTo.
type copying struct {
	b       *branch
	objects wire.Objects
	files   []workspace.Edit
	bytes   int
}

// addEntries takes the files of a folder, and of those in it.
func (c *copying) addEntries(dir string, list []gitobj.Entry, depth int) error {
	for _, e := range list {
		name := path.Join(dir, e.Name)
		var below []gitobj.Entry
		var err error
		switch {
		case e.IsDir() && depth == maxDepth:
			err = fmt.Errorf("more than %d folders deep", maxDepth)
		case e.Mode != filemode.Submodule && c.objects[e.ID].ID != e.ID:
			err = fmt.Errorf("object %s did not come with the others", e.ID)
		case e.IsDir():
			below, err = gitobj.DecodeTree(c.objects[e.ID].Data)
		case e.Mode == filemode.Regular || e.Mode == filemode.Executable || e.Mode == filemode.Deprecated:
			err = c.addFile(name, e)
		case e.Mode == filemode.Symlink:
			err = errors.New("a symbolic link; put the file itself there")
		default:
			err = errors.New("no file and no folder; put the file itself there")
		}
		if err != nil {
			return &branchError{Branch: c.b.Name, Path: name, Err: err}
		}
		if err := c.addEntries(name, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) addFile(name string, e gitobj.Entry) error {
	f := workspace.Edit{Path: name, Mode: filemode.Regular, Data: c.objects[e.ID].Data}
	if e.Mode == filemode.Executable {
		f.Mode = filemode.Executable
	}
	c.files = append(c.files, f)
	c.bytes += len(f.Data)
	switch {
	case len(f.Data) > maxFile:
		return fmt.Errorf("larger than %d bytes", maxFile)
	case c.bytes > maxTotal:
		return fmt.Errorf("the folders of definitions are larger than %d bytes together", maxTotal)
	case len(c.files) > maxFiles:
		return fmt.Errorf("the folders of definitions hold more than %d files", maxFiles)
	}
	return nil
}

// branchError says which file of the default branch can't be used.
type branchError struct {
	Branch, Path string
	Err          error
}

func (e *branchError) Error() string {
	return fmt.Sprintf("read %s of the default branch %s: %v", e.Path, e.Branch, e.Err)
}

// ExitCode is that of a wrong file.
func (e *branchError) ExitCode() int { return app.CodeUsage }

// maxWorkflowFiles is how many workflow files are looked into.
const maxWorkflowFiles = 100

// workflowFolders are where forges look for workflow files. The first that is there is the
// only one that is read.
func workflowFolders(f forge.Flavour) [][2]string {
	folders := [][2]string{{".github", "workflows"}}
	if f == forge.Gitea {
		folders = append([][2]string{{".forgejo", "workflows"}, {".gitea", "workflows"}}, folders...)
	}
	return folders
}

// workflowFiles lists the forge's workflow files. Where they can't be read there are none,
// which is no mistake: what is in them is only of help.
func (b *branch) workflowFiles(ctx context.Context, f forge.Flavour) []gitobj.Entry {
	for _, folder := range workflowFolders(f) {
		list := b.root
		for _, name := range folder {
			i := slices.IndexFunc(list, func(e gitobj.Entry) bool { return e.Name == name && e.IsDir() })
			if i < 0 {
				list = nil
				break
			}
			var err error
			if list, err = b.readTree(ctx, nil, list[i].ID); err != nil {
				return nil
			}
		}
		if list != nil {
			return slices.DeleteFunc(list, func(e gitobj.Entry) bool { return !e.Mode.IsFile() || !isWorkflowFile(e.Name) })
		}
	}
	return nil
}

// workflowText is the workflow file that jobs are from; nil where it can't be read.
func (b *branch) workflowText(ctx context.Context, f forge.Flavour, file string) []byte {
	list := slices.DeleteFunc(b.workflowFiles(ctx, f), func(e gitobj.Entry) bool { return e.Name != file })
	return b.readTexts(ctx, list)[file]
}

// workflowNamed is the base name of the one workflow file that calls itself that; empty
// where there are none or several.
func (b *branch) workflowNamed(ctx context.Context, f forge.Flavour, name string) string {
	var found []string
	for file, text := range b.readTexts(ctx, b.workflowFiles(ctx, f)) {
		var flow struct {
			Name string `yaml:"name"`
		}
		if yaml.Unmarshal(text, &flow) == nil && flow.Name == name {
			found = append(found, file)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// readTexts reads files, by their names; those that can't be read are left out.
func (b *branch) readTexts(ctx context.Context, files []gitobj.Entry) map[string][]byte {
	out := map[string][]byte{}
	var wants []wire.ID
	for _, e := range files {
		if !slices.Contains(wants, e.ID) {
			wants = append(wants, e.ID)
		}
	}
	if len(wants) == 0 || len(wants) > maxWorkflowFiles {
		return out
	}
	got, err := b.remote.Fetch(ctx, wire.FetchRequest{Wants: wants})
	for _, e := range files {
		if o, ok := got[e.ID]; ok && err == nil && len(o.Data) <= maxFile {
			out[e.Name] = o.Data
		}
	}
	return out
}

// definitions are the workflows of the default branch, by name. A name in a comment
// or in an input must not lead to any other file, nor to the registry, which agents'
// jobs can write.
type definitions struct {
	r      *definition.Resolver
	branch string
}

func newDefinitions(f *app.Factory, branch string) definitions {
	r := definition.New(f)
	r.Invalid, r.Warn = nil, nil // the runner says what is wrong
	return definitions{r: r, branch: branch}
}

// Resolve implements runner.Definitions. Without a name it is the only workflow, or
// the usual one.
func (d definitions) Resolve(ctx context.Context, name string) (runner.Definition, error) {
	files, err := d.r.Files()
	if err != nil {
		return runner.Definition{}, err
	}
	names := slices.Sorted(maps.Keys(files))
	if name == "" {
		if name = definition.UsualWorkflow; len(names) == 1 {
			name = names[0]
		}
	}
	if _, ok := files[name]; !ok {
		return runner.Definition{}, &app.UnknownError{What: "workflow", ID: name, Near: app.SuggestNames(name, names),
			Hint: "workflows of jobs are files of .uwf/workflows on the default branch (" + d.branch + ")"}
	}
	res, err := d.r.File(ctx, name)
	if err != nil {
		return runner.Definition{}, err
	}
	return runner.Definition{Hash: res.Hash, Nodes: res.Nodes, Definition: res.Definition}, nil
}
