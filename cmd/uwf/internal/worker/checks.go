package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// checker runs the checks of roles: by the commands of the settings, else by those that the
// files of the repository stand for.
type checker struct {
	w         *Worker
	runner    *command.Runner
	protected checks.Protected
}

func newChecker(w *Worker, self []string) (*checker, error) {
	protected, err := checks.NewProtected(w.config.Checks.Protect)
	if err != nil {
		return nil, &app.UsageError{Err: fmt.Errorf("checks.protect: %w", err)}
	}
	runner := command.NewRunner(command.Options{Self: self, Environ: w.f.Environ, Sandbox: w.sandbox, Redact: w.redact, Now: w.f.Now})
	return &checker{w: w, protected: protected, runner: runner}, nil
}

// useCommands has the commands of the repository run that prepare workspaces and check roles.
func (w *Worker) useCommands(ctx context.Context, self []string) error {
	c, err := newChecker(w, self)
	if err != nil {
		return err
	}
	w.Checker = c
	if len(w.config.Workspace.Prepare) == 0 && !w.config.Workspace.Submodules {
		return nil
	}
	root, err := w.f.StorageRoot()
	if err != nil {
		return err
	}
	loc, err := w.f.Locate(ctx)
	if err != nil {
		return err
	}
	p := newPreparer(w, c.runner, root, loc.URL)
	if w.config.Workspace.Submodules {
		w.folder.submodules = newSubmodules(ctx, w, p.root(), loc)
	}
	if len(w.config.Workspace.Prepare) > 0 {
		w.prepared = p
		w.Preparer = p
	}
	return nil
}

// Protects implements step.Checker.
func (c *checker) Protects(path string) bool { return c.protected.Holds(path) }

// planned is a check that is to run.
type planned struct {
	name string
	command.Command
}

// RunChecks implements step.Checker.
func (c *checker) RunChecks(ctx context.Context, req step.CheckRequest) ([]step.CheckResult, error) {
	plan, skipped, err := c.planChecks(ctx, req)
	if err != nil {
		return nil, err
	}
	ran, err := c.runOn(ctx, req.Commit, plan)
	if err != nil {
		return nil, err
	}
	failed := slices.DeleteFunc(slices.Clone(plan), func(p planned) bool { return ran[p.name].Status != record.CheckFailed })
	if p := c.w.prepared; len(failed) > 0 && !c.w.config.Checks.Strict && !req.Base.IsZero() && (p == nil || p.image == "" || p.base != "") {
		if p != nil { // not with what a role has chosen to install
			defer func(own string) { p.image = own }(p.image)
			p.image = p.base
		}
		before := ran
		if req.Base != req.Commit {
			if before, err = c.runOn(ctx, req.Base, failed); err != nil {
				return nil, fmt.Errorf("on the commit that the thread began from: %w", err)
			}
		}
		lacks, err := c.findLacking(ctx, req.Base)
		if err != nil {
			return nil, err
		}
		for name, b := range before {
			r := ran[name]
			switch need := missingProgram.FindStringSubmatch(b.Output); {
			case need != nil && b.ExitCode == notFound && r.ExitCode == notFound:
				r.Status, r.Enforced, r.Note = record.CheckSkipped, false, checks.JoinNotes(r.Note, "could not run: needs "+need[1], lacks)
			case b.ExitCode > 0 && req.Base != req.Commit: // one that was stopped there shows nothing
				r.Enforced, r.Note = false, checks.JoinNotes(r.Note, "it fails on the commit that the thread began from, too, and so is not enforced", lacks)
			}
			ran[name] = r
		}
	}
	var out []step.CheckResult
	for _, name := range req.Names {
		res, run := ran[name]
		if !run {
			res.Check = record.Check{Name: name, Status: record.CheckSkipped, Note: skipped[name]}
		}
		out = append(out, res)
	}
	return out, nil
}

// notFound is the exit code of shells if a program is missing; missingProgram finds its name at
// the end of what they print.
const notFound = 127

var missingProgram = lazyregexp.New(`(?s)^(?:.*\s)?(\S+): (?:command )?not found`)

// findLacking says that nothing prepares a commit's tree although it has a lock file; empty: it has
// none, or something does.
func (c *checker) findLacking(ctx context.Context, commit wire.ID) (string, error) {
	if c.w.prepared != nil {
		return "", nil
	}
	var failed error
	found, ok := checks.FindInstall(func(file string) ([]byte, bool) {
		b, err := c.w.folder.ws.ReadFile(ctx, commit, file, maxLock)
		failed = errors.Join(failed, err)
		return b, b != nil
	})
	if !ok || failed != nil {
		return "", failed
	}
	return DescribeInstall(found.Locks) + ": set workspace.prepare in .uwf/config.yaml", nil
}

// runOn runs checks on a throw-away copy of a commit.
func (c *checker) runOn(ctx context.Context, commit wire.ID, plan []planned) (map[string]step.CheckResult, error) {
	out := map[string]step.CheckResult{}
	if len(plan) == 0 {
		return out, nil
	}
	copied := ""
	commands := lists.Map(plan, func(p planned) command.Command {
		p.FillHome = func(ctx context.Context, home string) error { return c.w.fillHome(ctx, home, copied) }
		return p.Command
	})
	results, err := c.runner.RunOnCopy(ctx, func(ctx context.Context, dir string) error {
		copied = dir
		if commit.IsZero() { // an empty folder, in which nothing was made
			return nil
		}
		return errors.Join(c.w.folder.copyTo(ctx, commit, dir), c.w.prepared.fillTree(ctx, dir, nil))
	}, commands...)
	if err != nil {
		return nil, err
	}
	for i, res := range results {
		c.w.tellGaps(res.Gaps)
		out[plan[i].name] = resultOf(plan[i].name, res)
	}
	return out, nil
}

// resultOf is how a check ended by how its command did.
func resultOf(name string, res command.Result) step.CheckResult {
	out := step.CheckResult{Check: record.Check{Name: name, Status: record.CheckPassed, DurationMs: res.Duration.Milliseconds(), Output: res.Output}}
	switch {
	case res.Stopped != nil:
		out.Note = res.Stopped.Error()
	case res.Signal != 0:
		out.Note = fmt.Sprintf("a signal ended it: %s", res.Signal)
	case res.Code == 0:
		return out
	}
	out.Status, out.Enforced, out.ExitCode = record.CheckFailed, true, max(res.Code, 0)
	return out
}

// planChecks says what is to run for each name, and why nothing is for the others.
func (c *checker) planChecks(ctx context.Context, req step.CheckRequest) (plan []planned, skipped map[string]string, err error) {
	skipped = map[string]string{}
	allowed := cmp.Or(c.w.config.Checks.Time, config.DefaultCheckTime)
	found, err := c.detectMissing(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range req.Names {
		p := planned{name: name, Command: command.Command{Line: c.w.config.Checks.Commands[name], Timeout: min(allowed, max(req.Time/time.Duration(len(req.Names)), time.Second))}}
		switch f, ok := found[name]; {
		case ok && c.w.f.Job == nil && !app.HasConsent(c.w.f, demandOf(name, f)):
			skipped[name] = fmt.Sprintf("nobody consented to %q, which %s stands for: set checks.%s in .uwf/config.yaml", f.Command, f.File, name)
			continue
		case ok:
			p.Line, p.Place = c.w.prepared.usePython(f.Command, req.Location), req.Location
		case p.Line == "":
			skipped[name] = fmt.Sprintf("there is no command for it: set checks.%s in .uwf/config.yaml", name)
			continue
		}
		plan = append(plan, p)
	}
	return plan, skipped, nil
}

// detectMissing finds the commands of checks that the settings have none for, by the files
// that the thread began from: what an agent wrote decides nothing.
func (c *checker) detectMissing(ctx context.Context, req step.CheckRequest) (map[string]checks.Found, error) {
	if req.Base.IsZero() {
		return nil, nil
	}
	var failed error
	read := func(file string) ([]byte, bool) {
		b, err := c.w.folder.ws.ReadFile(ctx, req.Base, path.Join(req.Location, file), maxDetected)
		failed = errors.Join(failed, err)
		return b, b != nil
	}
	list := func() []string {
		all, err := c.w.folder.ws.ListFiles(ctx, req.Base)
		failed = errors.Join(failed, err)
		here := lists.Filter(all, func(file string) bool { return path.Dir(file) == path.Clean(req.Location) })
		return lists.Map(here, path.Base)
	}
	out := detectAll(c.w.config, req.Names, checks.Folder{Read: read, List: list})
	return out, failed
}

// maxDetected bounds a file that says which toolchain a repository has, in bytes.
const maxDetected = 1 << 20

// detectAll finds the commands of checks that the settings have none for.
func detectAll(c *config.Config, names []string, in checks.Folder) map[string]checks.Found {
	out := map[string]checks.Found{}
	for _, name := range names {
		if _, configured := c.Checks.Commands[name]; configured {
			continue
		}
		if f, ok := checks.Detect(name, in); ok {
			out[name] = f
		}
	}
	return out
}

// demandOf is what a person consents to of a command that was found: what runs, and the text
// of the script that it runs.
func demandOf(name string, f checks.Found) consent.Demand {
	d := config.NewDemand("checks."+name, f, "a check of what agents made; there is a "+f.File)
	shows := f.Command
	if f.Script != "" {
		shows += ", which runs: " + f.Script
	}
	if text.Line(shows) == shows { // else JSON shows where its lines end
		d.Shows = shows
	}
	return d
}

// settleChecks asks the person once of the commands that the repository's files stand for,
// for the checks of all roles of a definition.
func (w *Worker) settleChecks(def *workflow.Definition) error {
	if w.f.Job != nil || w.o.Elsewhere || w.o.AsksNobody {
		return nil
	}
	var names []string
	for _, role := range def.Roles {
		names = append(names, role.Checks...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(w.checksSettled, name) })
	read := func(file string) ([]byte, bool) {
		b, err := app.ReadRegular(filepath.Join(w.f.RepoRoot(), file), maxDetected)
		return b, err == nil
	}
	list := func() []string { return app.FileNames(os.DirFS(w.f.RepoRoot()), ".") }
	found := detectAll(w.config, names, checks.Folder{Read: read, List: list})
	var demands []consent.Demand
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if d := demandOf(name, found[name]); !app.HasConsent(w.f, d) {
			demands = append(demands, d)
		}
	}
	if err := app.SettleDemands(w.f, demands); err != nil {
		return err
	}
	w.checksSettled = append(w.checksSettled, names...)
	return nil
}
