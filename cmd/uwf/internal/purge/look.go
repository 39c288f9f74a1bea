package purge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/removal"
	"github.com/united-workforce/uwf/internal/text"
)

// fillResult fills in the result: the plan, and where else it stands.
func (p *purge) fillResult(ctx context.Context) error {
	r := &p.result
	r.takePlan(p.plan)
	r.Claims, r.Branches, r.Local, r.Next = []string{}, []branchHit{}, []leftover{}, []string{}
	for _, id := range p.t.hashes {
		if !slices.Contains(p.plan.Nodes, id) && len(p.t.hashes) > 1 {
			p.o.Factory.Notes().Printf("one of the hashes names no node of this store's history; if it is a text, say --text\n")
			break
		}
	}
	for _, t := range p.plan.Threads {
		if _, claimed := p.view.FindClaim(t.ID); claimed {
			r.Claims = append(r.Claims, string(t.ID))
		}
	}
	if p.t.needle != nil {
		if err := p.searchBranches(ctx); err != nil {
			return err
		}
		if err := p.searchLocal(ctx); err != nil {
			return err
		}
	}
	return p.printNext(ctx)
}

// maxKnown bounds how many commits are named as known in a search.
const maxKnown = 100

// searchBranches searches the work branches, as far as they are the threads' own, and the
// files of the default branch as they are now.
func (p *purge) searchBranches(ctx context.Context) error {
	names := map[string]bool{}
	for _, e := range p.view.Threads() {
		if e.Work.Branch != "" {
			names[e.Work.Branch] = true
		}
	}
	err := p.view.History(ctx, time.Time{}, func(e gitcas.Ended) error {
		if e.Work.Branch != "" {
			names[e.Work.Branch] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	l, err := p.store.Remote().List(ctx, "HEAD", "refs/heads/")
	if err != nil {
		return fmt.Errorf("list branches: %w", err)
	}
	var known []wire.ID
	if id, ok := l.Refs[l.Head]; ok {
		known = append(known, id)
	}
	var work []string
	for _, ref := range slices.Sorted(maps.Keys(l.Refs)) {
		name := strings.TrimPrefix(ref, "refs/heads/")
		switch {
		case ref == p.store.Branch() || ref == l.Head:
		case names[name] || strings.HasPrefix(name, layout.WorkBranches):
			work = append(work, name)
		case len(known) < maxKnown:
			known = append(known, l.Refs[ref])
		}
	}
	// What was merged is no longer the work branches' own.
	if tip, ok := l.Refs[l.Head]; ok && l.Head != p.store.Branch() {
		name := strings.TrimPrefix(l.Head, "refs/heads/")
		if err := p.searchBranch(ctx, name, wire.FetchRequest{Wants: []wire.ID{tip}, Depth: 1}); err != nil {
			p.o.Factory.Notes().Printf("not searched: %s\n", p.t.cleanText(err.Error()))
		}
	}
	for _, name := range work {
		err := p.searchBranch(ctx, name, wire.FetchRequest{Wants: []wire.ID{l.Refs["refs/heads/"+name]}, Haves: known})
		if err != nil && !errors.Is(err, wire.ErrNotFound) { // deleted meanwhile
			return err
		}
	}
	return nil
}

func (p *purge) searchBranch(ctx context.Context, name string, req wire.FetchRequest) error {
	hits, err := rewrite.Search(ctx, p.store.Remote(), req, p.t.needle)
	for _, h := range hits {
		p.result.Branches = append(p.result.Branches, branchHit{p.t.cleanText(name), h.Commit.String(), h.Path})
	}
	if err != nil {
		return fmt.Errorf("search branch %s: %w", name, err)
	}
	return nil
}

// busyError: jobs are at work on threads that change.
type busyError struct{ jobs []string }

func (e *busyError) Error() string {
	return "nothing was changed: jobs are at work on threads whose heads change: " + strings.Join(e.jobs, ", ") +
		"; wait for them (uwf ps), or say --force: their work is then kept as attempts, which may hold the text again"
}

// ExitCode: it is somebody else's turn.
func (e *busyError) ExitCode() int { return app.CodeNotYours }

// refuseBusy refuses while a job that counts works on a thread that changes.
func (p *purge) refuseBusy(v *gitcas.View, plan *rewrite.Plan) error {
	if p.o.Force {
		return nil
	}
	var jobs []string
	for _, t := range plan.Threads {
		e, _ := v.Entry(t.ID)
		if c, counts := life.WorkingClaim(v, t.ID, e); counts {
			jobs = append(jobs, fmt.Sprintf("%s (run %s on %s)", t.ID, c.Run, c.Host))
		}
	}
	if len(jobs) > 0 {
		return &busyError{jobs}
	}
	return nil
}

// checkBeforePush looks at the claims once more, right before the push, and deletes those
// on heads that will be no more: a job whose claim is gone stops and keeps what it
// has.
func (p *purge) checkBeforePush(ctx context.Context, plan *rewrite.Plan) ([]wire.RefUpdate, error) {
	v, err := p.store.Load(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.refuseBusy(v, plan); err != nil {
		return nil, err
	}
	p.result.Claims = []string{}
	var out []wire.RefUpdate
	for _, t := range plan.Threads {
		if held, claimed := v.FindClaim(t.ID); claimed {
			u, _ := view.ClaimUpdate(t.ID, &held, nil, v.Time())
			out = append(out, u)
			p.result.Claims = append(p.result.Claims, string(t.ID))
		}
	}
	p.callHook("push")
	return out, nil
}

// confirmPlan shows the plan and asks.
func (p *purge) confirmPlan() error {
	if p.o.Yes {
		return nil
	}
	shown := p.result
	shown.Next = nil
	w := p.o.Factory.Notes()
	shown.writeText(w)
	question := "Rewrite the history of the state branch?"
	if !p.result.changesStore() {
		question = "Delete these files?"
		if !slices.ContainsFunc(p.result.Local, func(l leftover) bool { return l.Remove }) {
			return nil // there is nothing to do but to say where it is
		}
	}
	return p.o.Confirm(question, false)
}

func (p *purge) printResult() error {
	return p.o.Factory.Printer().Print(&p.result, p.result.writeText)
}

// printNext is what a person has to do.
func (p *purge) printNext(ctx context.Context) error {
	r := &p.result
	if r.isEmpty() {
		if len(p.t.hashes) > 0 {
			r.Next = append(r.Next, "a hash that names no node may be a text: say --text")
		}
		return nil
	}
	loc, err := p.o.Locate(ctx)
	if err != nil {
		return err
	}
	add := func(format string, args ...any) { r.Next = append(r.Next, p.t.cleanText(fmt.Sprintf(format, args...))) }
	add("revoke the secret and put a new one in its place, wherever it is used: whoever could read the repository may have it")
	if p.t.argued {
		add("it stands in your shell's history now: take it out there; the next time give it as - (stdin) or @FILE")
	}
	if len(r.Branches) > 0 {
		add("branches of people hold it: rewrite them with git filter-repo --replace-text FILE --refs BRANCH, push them with --force, and tell those who work on them")
	}
	if p.t.needle != nil {
		add("only work branches and the tip of the default branch were searched: look through all of the others' history with git log --all -S TEXT")
	}
	if !r.changesStore() {
		return nil
	}
	if dir, local := strings.CutPrefix(loc.URL, "file://"); local {
		add("the old objects are still in the repository: git -C %[1]s reflog expire --expire-unreachable=now --all && git -C %[1]s gc --prune=now", text.ShellWord(dir))
	} else {
		add("the old commits can still be read by their ids on the remote until it collects them: GitHub: ask its support to remove them, with the old tip %s; GitLab: Settings, Repository cleanup; Gitea: Repository maintenance, run git gc; your own server: git reflog expire --expire-unreachable=now --all && git gc --prune=now", r.Tip.Old)
	}
	add("every clone, fork and cache has the old history: there, git branch -D %s (if there is one), then git fetch --prune origin && git reflog expire --expire-unreachable=now --all && git gc --prune=now; nobody may push the old branch again", strings.TrimPrefix(p.store.Branch(), "refs/heads/"))
	add("logs and summaries of CI jobs, comments, and the views of pull requests may quote it: delete them on the forge")
	if len(r.Claims) > 0 || len(r.Threads) > 0 {
		add("a job that was at work meanwhile may have kept it as an attempt: run the same uwf purge again when it has ended")
	}
	add("check the store: uwf fsck --history")
	return nil
}

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
		p.o.Factory.Notes().Printf("not searched: %s\n", p.t.cleanText(path))
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
	case len(parts) > 3 && parts[0] == filepath.Base(worker.ImageRoot(root)):
		return leftover{Path: filepath.Join(root, parts[0], parts[1], parts[2]), Remove: true, image: true, Why: "what was prepared for workspaces: the next step makes it anew"}, nil
	case len(parts) == 2 && parts[0] == "cache":
		return leftover{Path: path, Remove: true, Why: "a cache"}, nil
	case parts[0] == filepath.Base(worker.AsideRoot(root)):
		return leftover{Path: path, Why: "settings of coding tools in a workspace, which are put back when its agent ends: change them there"}, nil
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
	_, over, err := p.view.FindEnded(ctx, id)
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
		if l.image {
			l.real = worker.RetireImage(l.real)
		}
		if err := removal.Tree(ctx, l.real, 0); err != nil {
			p.result.Local[i].Remove, p.result.Local[i].Why = false, "it could not be deleted"
			errs = append(errs, fmt.Errorf("the state branch is purged, but delete %s by hand: %w", l.Path, err))
		}
	}
	return errors.Join(errs...)
}
