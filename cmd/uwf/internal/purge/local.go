package purge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/removal"
)

// maxFile is the largest file of this machine that is searched, in bytes.
const maxFile = 64 << 20

// searchLocal searches the storage root. What uwf made and can do without goes; what is
// a person's is named.
func (p *purge) searchLocal(ctx context.Context) error {
	root, err := p.o.Root()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p.noteUnsearched(path, err):
			return nil
		case d.IsDir() && filepath.Dir(path) == root && strings.HasSuffix(d.Name(), ".git"):
			return fs.SkipDir // a repository: what to do with its objects is said elsewhere
		case !d.Type().IsRegular() || !p.fileHolds(path):
			return nil
		}
		left, err := p.judgeLeftover(ctx, root, path)
		if err != nil || seen[left.Path] {
			return err
		}
		seen[left.Path] = true
		left.real, left.Path = left.Path, p.t.cleanText(left.Path)
		p.result.Local = append(p.result.Local, left)
		return nil
	})
	if err != nil {
		return fmt.Errorf("search %s: %w", root, err)
	}
	return nil
}

// noteUnsearched notes what can't be looked at, and reports whether that is so. What is
// gone by now is no matter.
func (p *purge) noteUnsearched(path string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.o.Notes().Printf("not searched: %s\n", p.t.cleanText(path))
	}
	return err != nil
}

func (p *purge) fileHolds(path string) bool {
	b, err := app.ReadRegular(path, maxFile)
	if p.noteUnsearched(path, err) {
		return false
	}
	_, n := p.t.needle.Replace(string(b), nil)
	return n > 0
}

// judgeLeftover says what is to become of a file, or of the working folder that it is
// in.
func (p *purge) judgeLeftover(ctx context.Context, root, path string) (leftover, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return leftover{}, err
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	switch {
	case len(parts) > 2 && parts[0] == "work" && gitcas.ThreadID(parts[1]).Valid():
		return p.workFolder(ctx, root, path, gitcas.ThreadID(parts[1]))
	case len(parts) == 3 && parts[0] == filepath.Base(worker.UnpushedRoot(root)):
		return leftover{Path: path, Remove: true, Why: "a step that was sealed and not pushed: it would bring back what is purged"}, nil
	case len(parts) == 2 && parts[0] == "logs":
		return leftover{Path: path, Remove: true, Why: "a file of uwf's debug log"}, nil
	case len(parts) == 2 && parts[0] == "cache":
		return leftover{Path: path, Remove: true, Why: "a cache"}, nil
	case parts[0] == filepath.Base(app.KeptSettings(root)):
		return leftover{Path: path, Why: "git's settings of a workspace, which are put back when its agent ends: change them there"}, nil
	case rel == "config.yaml" || rel == ".env":
		return leftover{Path: path, Why: "your settings: put the new secret there"}, nil
	}
	return leftover{Path: path, Why: "not a file that uwf made"}, nil
}

// workFolder: that of a thread that is over goes whole.
func (p *purge) workFolder(ctx context.Context, root, path string, id gitcas.ThreadID) (leftover, error) {
	if _, alive := p.view.Entry(id); alive {
		return leftover{Path: path, Why: "the working folder of a thread that is alive: change it on the work branch, or cancel the thread"}, nil
	}
	_, over, err := p.store.FindEnded(ctx, p.view, id)
	if err != nil || over {
		return leftover{Path: worker.WorkDir(root, id), Remove: true, Why: "the working folder of a thread that is over"}, err
	}
	return leftover{Path: path, Why: "the working folder of a thread that this store doesn't know"}, nil
}

// removeLocal deletes what the plan says.
func (p *purge) removeLocal(ctx context.Context) error {
	var errs []error
	for i, l := range p.result.Local {
		if !l.Remove {
			continue
		}
		if err := removal.Tree(ctx, l.real, 0); err != nil {
			p.result.Local[i].Remove, p.result.Local[i].Why = false, "it could not be deleted"
			errs = append(errs, fmt.Errorf("the state branch is purged, but delete %s by hand: %w", l.Path, err))
		}
	}
	return errors.Join(errs...)
}
