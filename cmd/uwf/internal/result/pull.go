package result

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/hosted"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// PullOptions are what `uwf thread pr` works with.
type PullOptions struct {
	Factory *app.Factory
	Client  hosted.Client
	Thread  string
	Base    string
	Draft   bool
}

// NewCmdPull makes `uwf thread pr`. A runF that is not nil replaces the run.
func NewCmdPull(f *app.Factory, runF func(context.Context, *PullOptions) error) *cobra.Command {
	o := &PullOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "pr THREAD",
		Short: "Open a pull request with what a thread made",
		Long: `Open a pull request for the thread's work branch on GitHub, Gitea or Forgejo, with the title
and the text that a job would give it. Where there is one already, it is named.

The token is GITHUB_TOKEN for that server, else what gh has, else what git's credential
helpers have. On another forge, such as GitLab, it says what to do there. Threads that are kept in this repository alone have their branch here: push it
first, the command says how.`,
		Example: "  uwf thread pr 01JY0000000000000000000000 --draft",
		RunE:    app.Run(o, runF, pullRun, func(args []string) { o.Thread, o.Client = args[0], hosted.NewClient(f) }),
	})
	cmd.Flags().StringVar(&o.Base, "base", "", "merge into this `BRANCH` (default: the repository's default branch)")
	cmd.Flags().BoolVar(&o.Draft, "draft", false, "open it as a draft")
	return cmd
}

// pullResult is the JSON of `uwf thread pr`.
type pullResult struct {
	Thread  gitcas.ThreadID `json:"thread"`
	Number  int             `json:"number"`
	URL     string          `json:"url"`
	Existed bool            `json:"existed"`
}

func pullRun(ctx context.Context, o *PullOptions) error {
	f := o.Factory
	w, err := readWork(ctx, f, o.Thread)
	if err != nil {
		return err
	}
	if len(w.changes) == 0 {
		return app.Usagef("%s: there is nothing for a pull request", w.describeEmpty())
	}
	place, err := o.findPlace(ctx, w)
	if err != nil {
		return err
	}
	on, err := o.Client.Forge(ctx, place)
	if err != nil {
		return fmt.Errorf("open a pull request on %s: %w", place.URL(), err)
	}
	if o.Base == "" {
		r, err := on.ReadRepository(ctx)
		if err != nil {
			return fmt.Errorf("ask %s for its default branch: %w", place.URL(), err)
		}
		o.Base = r.DefaultBranch
	}
	n, err := o.writePull(ctx, w, place, on)
	if err != nil {
		return err
	}
	made, err := on.CreatePull(ctx, n)
	out := pullResult{Thread: w.ID, Number: made.Number, URL: made.URL}
	if errors.Is(err, forge.ErrExists) || forge.IsUnsure(err) {
		found, ok, ferr := on.FindPull(ctx, n.Head)
		if ferr != nil || !ok {
			return errors.Join(err, ferr)
		}
		err, out.Number, out.URL, out.Existed = nil, found.Number, found.URL, true
	}
	if err != nil {
		return fmt.Errorf("open a pull request of %s into %s on %s: %w", n.Head, n.Base, place.URL(), err)
	}
	return f.Printer().Print(out, func(p *output.Writer) {
		if out.Existed {
			p.Printf("there is a pull request for it already, #%d\n%s\n", out.Number, out.URL)
			return
		}
		p.Good(fmt.Sprintf("opened pull request #%d\n", out.Number))
		p.Println(out.URL)
	})
}

// OnForge says whether a thread's branch can become a pull request: the repository's remote is
// on a server, by its address.
func OnForge(ctx context.Context, f *app.Factory) bool {
	loc, err := f.Locate(ctx)
	if err != nil || f.Job != nil {
		return false
	}
	address := loc.URL
	if loc.Kind == app.RepositoryStore {
		address, err = f.RemoteURL(ctx, "origin")
	}
	p, other := hosted.Find(ctx, f, address)
	return err == nil && other == nil && p.Other() == ""
}

// refuseOther says what to do on a forge whose API uwf does not speak; push is what brings the
// branch there, empty where it is there.
func (o *PullOptions) refuseOther(ctx context.Context, p hosted.Place, w *work, push string) error {
	name, request := p.FindOther(ctx, o.Client.HTTP), "pull request"
	switch name {
	case "":
		return nil
	case "GitLab":
		request = "merge request"
	}
	if push != "" {
		push = "push it (" + push + "), and "
	}
	return app.Usagef("uwf can open no pull request at %s: that is %s, whose API it does not speak; for the branch %s, %sopen a %s there, or take the changes here: uwf thread apply %s",
		p.URL(), name, w.Entry.Work.Branch, push, request, w.ID)
}

// findPlace is the repository on a forge that has the thread's branch.
func (o *PullOptions) findPlace(ctx context.Context, w *work) (hosted.Place, error) {
	f := o.Factory
	loc, err := f.Locate(ctx)
	if err != nil {
		return hosted.Place{}, err
	}
	if loc.Kind == app.RemoteStore {
		p, err := hosted.Find(ctx, f, loc.URL)
		if err != nil {
			return p, app.Usagef("there can be no pull request: %w; merge it by hand: %s", err, f.ShowRef(ctx, "merge", w.Entry.Work.Branch))
		}
		return p, o.refuseOther(ctx, p, w, "")
	}
	const remote = "origin"
	address, err := f.RemoteURL(ctx, remote)
	if err != nil || loc.Kind != app.RepositoryStore {
		return hosted.Place{}, app.Usagef("there can be no pull request: this repository has no remote %s; take the changes by uwf thread apply %s", remote, w.ID)
	}
	p, err := hosted.Find(ctx, f, address)
	if err != nil {
		return p, app.Usagef("there can be no pull request: %w; take the changes by uwf thread apply %s", err, w.ID)
	}
	if err := o.refuseOther(ctx, p, w, "git push "+remote+" "+w.Entry.Work.Branch); err != nil {
		return p, err
	}
	far, err := f.Dial(address)
	if err != nil {
		return p, err
	}
	ref := workbranch.Ref(w.Entry.Work.Branch)
	var l wire.Listing
	if l, err = far.List(ctx, ref); err != nil {
		return p, fmt.Errorf("look for the branch %s on %s: %w", w.Entry.Work.Branch, p.URL(), err)
	}
	if l.Refs[ref] != w.tip {
		return p, app.Usagef("the branch %s is not on %s as it is here: push it first: git push %s %s", w.Entry.Work.Branch, p.URL(), remote, w.Entry.Work.Branch)
	}
	return p, nil
}

// writePull makes title and text as a job does.
func (o *PullOptions) writePull(ctx context.Context, w *work, at hosted.Place, on forge.Forge) (forge.NewPull, error) {
	n := forge.NewPull{Head: w.Entry.Work.Branch, Base: o.Base, Draft: o.Draft}
	wk, err := worker.New(ctx, o.Factory, worker.Options{AsksNobody: true})
	if err != nil {
		return n, err
	}
	view, err := threadview.Load(ctx, w.View, w.ID)
	if err != nil {
		return n, err
	}
	view.Entry = w.Entry
	branch := gitcas.DefaultBranch
	if loc, err := o.Factory.Locate(ctx); err == nil {
		branch = loc.Branch
	}
	e := &effects.Effects{
		Engine: wk.Stepper, Forge: on, Inputs: &ci.Inputs{}, Now: o.Factory.Now,
		Job: ci.Job{ServerURL: at.Server.String(), Repository: at.Repository, StateBranch: branch},
	}
	t := e.DescribeThread(view, report.Delivered)
	t.Role, t.Question = "", ""
	if n.Title, err = e.RedactText(report.PullTitle(t, w.title)); err == nil {
		n.Body, err = e.RedactText(report.PullBody(t))
	}
	return n, err
}
