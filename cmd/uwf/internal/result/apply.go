package result

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/checkout"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// ApplyOptions are what `uwf thread apply` works with.
type ApplyOptions struct {
	Factory *app.Factory
	Thread  string
	Squash  bool
	Yes     bool
	// RunFilters lets git's smudge filters run on what the thread made.
	RunFilters bool
}

// NewCmdApply makes `uwf thread apply`. A runF that is not nil replaces the run.
func NewCmdApply(f *app.Factory, runF func(context.Context, *ApplyOptions) error) *cobra.Command {
	o := &ApplyOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "apply THREAD",
		Short: "Take what a thread changed into this checkout",
		Long: `Take what a thread changed into the files of this checkout, as changes that are committed
nowhere: the index, the branch and everything else stay as they are, and no hook runs. Lines
that you changed meanwhile at other places are kept; where the same lines were changed,
nothing is done, and the files are named. Your own uncommitted changes that the thread began
with are not applied again. Git itself says what is here and what is to be written, so line ends,
encodings, file modes and a sparse checkout are as this checkout has them.

A file that is stored through a filter, such as Git LFS, is refused: its filter is a program that
would run on what agents wrote. --run-filters lets it.

Files that something obeys by itself, such as .envrc or .vscode/tasks.json, are named before
you are asked. With --squash the changes become one commit of the branch that is checked out.`,
		Example: "  uwf thread apply 01JY0000000000000000000000 --yes\n  uwf thread apply @latest --squash --yes",
		RunE:    app.Run(o, runF, applyRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().BoolVar(&o.Squash, "squash", false, "make one commit of it")
	cmd.Flags().BoolVar(&o.RunFilters, "run-filters", false, "let git run its smudge filters, such as Git LFS, on the files")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "ask nothing")
	return cmd
}

// applyResult is the JSON of `uwf thread apply`.
type applyResult struct {
	Thread gitcas.ThreadID `json:"thread"`
	Folder string          `json:"folder"`
	Files  int             `json:"files"`            // that were changed, or were so already
	Merged []string        `json:"merged,omitempty"` // that were changed here, too
	Commit string          `json:"commit,omitempty"` // with --squash
}

func applyRun(ctx context.Context, o *ApplyOptions) (err error) {
	f := o.Factory
	w, err := readWork(ctx, f, o.Thread)
	if err != nil {
		return err
	}
	dir := cmp.Or(f.RepoRoot(), f.Dir)
	if o.Squash {
		if err := o.checkIndex(ctx, w); err != nil {
			return err
		}
	}
	out := applyResult{Thread: w.ID, Folder: dir, Files: len(w.changes)}
	scratch, err := checkout.Open(ctx, f, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	p := &planner{f: f, scratch: scratch, top: dir, work: w, runFilters: o.RunFilters}
	if err := planWork(ctx, p); err != nil {
		return fmt.Errorf("compare the work of thread %s with %s: %w", w.ID, dir, err)
	}
	if len(p.conflicts) > 0 {
		return o.refuseConflicts(ctx, w, p)
	}
	if n := len(p.changedPaths()); n > 0 {
		o.announceChanges(w, p)
		where := "in " + app.ShortenPath(f, dir)
		if dir == f.Dir {
			where = "here"
		}
		if err := f.Confirm(fmt.Sprintf("Change %s %s?", text.Plural(n, "file"), where), o.Yes); err != nil {
			return err
		}
		if err := p.carryOut(ctx); err != nil {
			return &app.UsageError{Err: fmt.Errorf("apply the work of thread %s to %s: %w; what was done is kept: run it again when that is mended", w.ID, dir, err)}
		}
	}
	out.Merged = p.merged
	if paths := p.changedPaths(); o.Squash && len(paths) > 0 {
		if out.Commit, err = o.commitFiles(ctx, w, paths); err != nil {
			return err
		}
	}
	return f.Printer().Print(out, func(to *output.Writer) { o.writeText(to, out, w, p) })
}

func (o *ApplyOptions) writeText(to *output.Writer, out applyResult, w *work, p *planner) {
	switch {
	case len(w.changes) == 0:
		to.Println(w.describeEmpty())
		return
	case len(p.changedPaths()) == 0:
		to.Printf("nothing is to be done: each of %s is as the thread has it\n", text.Plural(p.already, "file"))
		return
	}
	to.Good(fmt.Sprintf("changed %s\n", text.Plural(len(p.changedPaths()), "file")))
	if len(p.merged) > 0 {
		to.Printf("merged with your own changes: %s\n", strings.Join(p.merged, ", "))
	}
	if out.Commit != "" {
		to.Printf("as commit %.12s\n", out.Commit)
		to.FaintLine("see it:  git show " + out.Commit[:12])
		return
	}
	to.FaintLine("see it:  git diff")
}

// maxShown is how many files are named.
const maxShown = 20

// announceChanges says what is about to be changed, and what of it runs by itself.
func (o *ApplyOptions) announceChanges(w *work, p *planner) {
	notes := o.Factory.Notes()
	name := func(paths []string) {
		for i, path := range paths {
			if i == maxShown {
				notes.Printf("  and %d more (uwf thread diff %s --stat)\n", len(paths)-maxShown, w.ID)
				return
			}
			notes.Printf("  %s\n", o.Factory.CleanMessage(path))
		}
	}
	notes.Printf("thread %s · %s\n", w.ID, o.Factory.CleanMessage(w.title))
	name(p.changedPaths())
	if obeyed := findObeyed(w.changes); len(obeyed) > 0 {
		notes.Warn("these run by themselves, or say what runs: read them first (uwf thread diff " + string(w.ID) + ")\n")
		name(obeyed)
	}
	if w.Status() != "ended" {
		notes.Printf("the thread is %s: this is what it has made until now\n", w.Status())
	}
}

// refuseConflicts says why nothing was done, and what a person can do.
func (o *ApplyOptions) refuseConflicts(ctx context.Context, w *work, p *planner) error {
	shown := p.conflicts[:min(len(p.conflicts), maxShown)]
	more := ""
	if n := len(p.conflicts) - len(shown); n > 0 {
		more = fmt.Sprintf("\n  and %d more", n)
	}
	how := "commit or stash what you changed and try again"
	if merge := o.Factory.ShowRef(ctx, "merge", w.Entry.Work.Branch); merge != "" && !w.base.IsZero() {
		how += ", or merge its branch: " + merge
	}
	return app.Usagef("thread %s can't be applied to this checkout, and nothing was changed:\n  %s%s\n%s", w.ID, o.Factory.CleanMessage(strings.Join(shown, "\n  ")), more, how)
}

// checkIndex refuses to make a commit where it would hold what is not the thread's.
func (o *ApplyOptions) checkIndex(ctx context.Context, w *work) error {
	f := o.Factory
	if f.RepoRoot() == "" {
		return app.Usagef("--squash makes a commit, and %s is in no git repository: leave it out", f.Dir)
	}
	staged, err := app.GitHere(ctx, f, "diff", "--cached", "--name-only")
	if err != nil {
		return err
	}
	if staged != "" {
		return app.Usagef("--squash makes a commit, and the index holds changes of yours already: commit them first, or leave --squash out")
	}
	mine, err := app.FindUncommitted(ctx, f)
	if err != nil {
		return err
	}
	for _, c := range w.changes {
		if slices.Contains(mine.Tracked, c.Path) {
			return app.Usagef("--squash makes a commit, and %s has changes of yours that are in none: commit them first, or leave --squash out", c.Path)
		}
	}
	return nil
}

// commitFiles makes a commit of what the thread changed. No hook runs.
func (o *ApplyOptions) commitFiles(ctx context.Context, w *work, files []string) (string, error) {
	f, root := o.Factory, o.Factory.RepoRoot()
	var paths strings.Builder
	for _, path := range files {
		paths.WriteString(":(top,literal)" + path + "\x00")
	}
	git := func(stdin string, args ...string) error {
		_, err := app.GitIn(ctx, f, app.GitCall{Dir: root, Stdin: []byte(stdin), Args: args})
		return err
	}
	err := git(paths.String(), "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
	if err == nil {
		title := cmp.Or(text.OneLine(w.title), "Work of thread "+string(w.ID))
		err = git(fmt.Sprintf("%s\n\nUwf-Thread: %s\n", title, w.ID), "commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--file=-")
	}
	if err != nil {
		return "", &app.UsageError{Err: fmt.Errorf("the files are changed, but the commit could not be made: %w; commit them by hand", err)}
	}
	return app.GitHere(ctx, f, "rev-parse", "HEAD")
}
