// Package purge is `uwf purge`: taking a secret that leaked, or a node, out of the
// whole history of the state branch, and saying where else it is. It never says,
// logs or stores what it looks for, and never rewrites branches of people.
package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options are what `uwf purge` works with.
type Options struct {
	Open       lookup.Open
	Factory    *app.Factory
	Confirm    func(question string, yes bool) error
	Root       func() (string, error) // the storage root
	Locate     func(context.Context) (app.Location, error)
	Person     func(context.Context) (*story.Person, error)
	Args       []string
	Text       bool // arguments are texts, even if they look like hashes
	LeaveNames bool
	Force      bool
	Yes        bool
	DryRun     bool
}

// NewCmdPurge makes `uwf purge`. A runF that is not nil replaces the run.
func NewCmdPurge(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f, Open: f.Store, Confirm: f.Confirm, Root: f.StorageRoot, Locate: f.Locate}
	o.Person = func(ctx context.Context) (*story.Person, error) { return person.IdentifyByGit(ctx, f) }
	cmd := &cobra.Command{
		Use:   "purge TEXT|@FILE|-|HASH...",
		Short: "Take a leaked secret, or a node, out of the history",
		Long: `Take a text out of the whole history of the state branch: every commit in which it
stands is written anew with [purged] in its place, in nodes, pages, lists and messages,
also where it is escaped, encoded (base64, hex, percent) or cut off. Whatever refers to a
node that changes gets its new hash, up to the heads of threads. Dates and authors stay,
and every thread can be read, forked and stepped as before. A HASH names a node: all of
its free texts go, and the pages and messages of its thread that quote them.

Give a secret as - (from stdin) or @FILE: an argument is kept in your shell's history and
seen by everybody who lists processes. Texts of less than 6 characters, and words that
stand everywhere, are refused. Each longer line of a text of several lines is looked for
by itself too. Where a text stands in a name that other things depend on (a role, a
status, a property of a schema), nothing is done; --leave-names leaves it there.

A plan is shown first and has to be confirmed. A job that works on a thread whose head
changes keeps you from it, unless --force: its work is then kept as an attempt. Work
branches are people's code: those that hold the text are listed, never rewritten.

What was pushed was public to all who could read the repository. Revoke the secret first.`,
		Example: `  printf 'The parser panics on an empty file' | uwf purge - --yes
  uwf purge --dry-run "The parser panics on an empty file"`,
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{app.SecretArguments: "yes"},
		RunE:        app.Run(o, runF, purgeRun, func(args []string) { o.Args = args }),
	}
	// Cobra's own message would quote a text that begins with a dash.
	cmd.SetFlagErrorFunc(func(*cobra.Command, error) error {
		return errors.New("an unknown flag, or one that lacks its value; a text that begins with a dash goes after --, or better through stdin: uwf purge -")
	})
	cmd.Flags().BoolVar(&o.Text, "text", false, "arguments are texts, also those that look like the hash of a node")
	cmd.Flags().BoolVar(&o.LeaveNames, "leave-names", false, "leave it in names that other things depend on, and take it out everywhere else")
	cmd.Flags().BoolVar(&o.Force, "force", false, "do it although jobs are at work on threads that change")
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "don't ask")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the plan, and change nothing")
	return cmd
}

// purgeRun cleans whatever goes wrong: an error may quote what it is about.
func purgeRun(ctx context.Context, o *Options) error {
	t, err := readTargets(o)
	if err != nil {
		return err
	}
	p := &purge{o: o, t: t}
	err = p.runPurge(ctx)
	if err == nil || errors.As(err, new(*app.Exit)) {
		return err
	}
	return &cleanError{text: t.cleanText(app.Message(err)), code: app.ExitCodeOf(err)}
}

// cleanError is an error without what was looked for. It doesn't wrap what it was
// made of.
type cleanError struct {
	text string
	code int
}

func (e *cleanError) Error() string { return e.text }

// ExitCode is that of the error.
func (e *cleanError) ExitCode() int { return e.code }

// purge is one run of the command.
type purge struct {
	o      *Options
	t      *targets
	store  *gitcas.Store
	view   *gitcas.View
	plan   *rewrite.Plan
	result result
}

func (p *purge) runPurge(ctx context.Context) error {
	var err error
	if p.store, p.view, err = lookup.Load(ctx, p.o.Open); err != nil {
		return err
	}
	rewriter := p.newRewriter()
	if p.plan, err = rewriter.MakePlan(ctx); err != nil {
		return p.explainError(err)
	}
	if err := p.fillResult(ctx); err != nil {
		return err
	}
	switch {
	case p.result.isEmpty():
		return p.printResult()
	case p.o.DryRun:
		p.result.DryRun = true
		return p.printResult()
	}
	if err := p.refuseBusy(p.view, p.plan); err != nil {
		return err
	}
	if err := p.confirmPlan(); err != nil {
		return err
	}
	if !p.plan.Empty() {
		if p.plan, err = rewriter.Execute(ctx); err != nil {
			return p.explainError(err)
		}
		p.callHook("pushed")
		p.result.takePlan(p.plan)
		p.result.Purged = true
	}
	err = p.removeLocal(ctx)
	if p.result.Purged {
		err = errors.Join(err, p.noteDeed(ctx))
	}
	return errors.Join(p.printResult(), err)
}

// noteDeed writes into the history that there was a purge, and whose it was: nothing else
// on the branch shows that its commits were others before. It may stand there twice, where
// the answer to a push was lost.
func (p *purge) noteDeed(ctx context.Context) error {
	fail := func(err error) error {
		return fmt.Errorf("the state branch is purged, but its history doesn't say who did it: %w", err)
	}
	who, err := p.o.Person(ctx)
	if err != nil {
		return fail(err)
	}
	who.Name, who.Email = cmp.Or(p.t.cleanText(who.Name), "somebody"), p.t.cleanText(who.Email)
	v, err := p.store.Load(ctx)
	if err != nil {
		return fail(err)
	}
	_, err = p.store.Update(ctx, v, func(*gitcas.View) (*gitcas.Change, error) {
		return story.Sign(&gitcas.Change{
			Deed: true, Subject: fmt.Sprintf("purged · %d commits rewritten", p.plan.Changed),
			// Not what the tip was: a forge may still hand that commit out to who knows its name.
			Body: fmt.Sprintf("%d nodes were purged, %d refer to such. The tip became %s.", p.plan.Purged, p.plan.Rehashed, p.plan.New),
		}, who), nil
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

func (p *purge) newRewriter() *rewrite.Rewriter {
	o := rewrite.Options{
		Branch: p.store.Branch(), Store: layout.StoreRef, Attempts: layout.Attempts,
		Atomic: p.store.Atomic(p.view), Nodes: p.t.hashes, Quotes: findQuotes, LeaveNames: p.o.LeaveNames,
		Verify: verifyWorkflow, Before: p.checkBeforePush, Outages: p.store.Outages(),
	}
	if p.t.needle != nil {
		o.Find = p.t.needle
	}
	return rewrite.New(p.store.Remote(), o)
}

// callHook tells of a point at which a test may kill the process.
func (p *purge) callHook(point string) {
	if p.o.Factory.Hook != nil {
		p.o.Factory.Hook("purge " + point)
	}
}

// findQuotes finds the texts of a node that is purged; those that stand everywhere are
// left out.
func findQuotes(texts []string) rewrite.Finder {
	good := lists.Filter(texts, func(s string) bool {
		_, _, err := redact.NewNeedle([]string{s})
		return err == nil
	})
	if n, _, err := redact.NewNeedle(good); err == nil && len(good) > 0 {
		return n
	}
	return nil
}

// verifyWorkflow makes sure that a workflow still is one.
func verifyWorkflow(g node.Getter, h node.Hash, n node.Node) error {
	if !record.IsWorkflow(n.Type) {
		return nil
	}
	_, err := workflow.FromNode(node.First{node.Map{h: n}, g}, h)
	return err
}

// explainError says what to do about an error of the rewrite.
func (p *purge) explainError(err error) error {
	switch {
	case errors.As(err, new(*rewrite.FixedError)):
		return app.Usagef("nothing was changed: %w\ngive more of the text, or leave it in these names: --leave-names", err)
	case errors.As(err, new(*rewrite.NothingError)):
		return app.Usagef("nothing was changed: %w", err)
	case errors.Is(err, rewrite.ErrMoved):
		return &cleanError{text: p.t.cleanText("nothing was changed: " + err.Error() + ", perhaps by another purge: run it again"), code: app.CodeNotYours}
	case errors.Is(err, rewrite.ErrUnreadable):
		return &cleanError{text: p.t.cleanText("nothing was changed: " + err.Error()), code: app.CodeDamaged}
	case errors.Is(err, wire.ErrProtected):
		return fmt.Errorf("nothing was changed: the remote takes no new history of the state branch: allow it for this push (branch rules; receive.denyNonFastForwards): %w", err)
	}
	return err
}

// maxText is the largest file or stdin that is read, in bytes. Longer texts are
// refused anyway.
const maxText = 1 << 20

// targets are what is to be taken out.
type targets struct {
	needle *redact.Needle // nil: no text
	hashes []node.Hash
	argued bool // a text stood in the arguments
}

// readTargets reads the arguments. Its errors name an argument by its number alone.
func readTargets(o *Options) (*targets, error) {
	if len(o.Args) == 0 {
		return nil, app.Usagef("say what to take out: - for stdin, @FILE, the text itself, or the hash of a node")
	}
	t := &targets{}
	var texts []string
	var numbers []int
	stdin := false
	for i, arg := range o.Args {
		text, isText, err := o.readTarget(t, arg, &stdin)
		if err != nil {
			return nil, app.Usagef("argument %d: %w", i+1, err)
		}
		if isText {
			texts, numbers = append(texts, text), append(numbers, i+1)
		}
	}
	if len(texts) == 0 {
		return t, nil
	}
	needle, bad, err := redact.NewNeedle(texts)
	if err != nil {
		return nil, app.Usagef("argument %d: %w", numbers[bad], err)
	}
	t.needle = needle
	return t, nil
}

// readTarget reads one argument: a text, or the hash of a node, which goes to t.
func (o *Options) readTarget(t *targets, arg string, stdin *bool) (text string, isText bool, err error) {
	name, isFile := strings.CutPrefix(arg, "@")
	switch {
	case arg == "-" && *stdin:
		return "", false, errors.New("stdin can be read only once")
	case arg == "-":
		*stdin = true
		b, err := o.Factory.ReadInput("-", maxText)
		return strings.TrimRight(string(b), "\r\n"), true, err
	case isFile && name != "":
		b, err := o.Factory.ReadInput(name, maxText)
		if err != nil {
			err = explainUnreadable(err)
		}
		return strings.TrimRight(string(b), "\r\n"), true, err
	case !o.Text && node.Hash(arg).Valid():
		t.hashes = append(t.hashes, node.Hash(arg))
		return "", false, nil
	}
	t.argued = true
	return arg, true, nil
}

// explainUnreadable says why a file can't be read, but not its name: it may be no file's, but
// a text that begins with @.
func explainUnreadable(err error) error {
	why := fmt.Sprintf("it is no file, or larger than %d bytes", maxText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "it is not there"
	case errors.Is(err, fs.ErrPermission):
		why = "you may not read it"
	}
	return fmt.Errorf("the file after the @ can't be read: %s; a text that begins with @ goes through stdin: uwf purge -", why)
}

// cleanText takes what is looked for out of a text.
func (t *targets) cleanText(s string) string {
	if t.needle != nil {
		s, _ = t.needle.Replace(s, nil)
	}
	return s
}
