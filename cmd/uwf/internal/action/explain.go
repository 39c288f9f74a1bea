package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// explainFailure says why the job is red: at the lines of a definition, else in one
// annotation; and what to do, where the repository's settings are the cause.
func (j *job) explainFailure(ctx context.Context, err error) {
	var file *branchError
	if errors.As(err, new(*toldError)) {
		// What the message adds to the error itself: what to do about a remote, say.
		if more := strings.TrimSpace(strings.TrimPrefix(app.Message(err), err.Error())); more != "" {
			j.log.writeLine("%s", more)
		}
	} else {
		for _, a := range ci.AnnotationsOf(err, app.Message(err)) {
			if errors.As(err, &file) {
				a.File = file.Path
			}
			j.log.Error(a)
		}
	}
	if isPermission(err) {
		j.findHints(ctx)
	}
}

// explainUnready says on the issue, too, why a job can't even begin, where somebody is waiting
// for it: as without the model's key, or with settings that are wrong.
func (j *job) explainUnready(ctx context.Context, err error) error {
	if j.forge == nil || app.ExitCodeOf(err) != app.CodeUsage {
		return err
	}
	red := firstRedactor(j.f.Environ, []string{j.in.Token, j.in.APIKey})
	if red == nil {
		return err
	}
	r := &runner.Runner{Engine: &step.Stepper{Engine: &thread.Engine{Redact: red}}, Forge: j.forge, Inputs: j.in.Inputs, Job: j.env.Job, Out: j.log}
	r.ReportNotReady(ctx, j.ev, app.Message(err))
	return err
}

// isPermission tells the failures that a setting or a permission mends.
func isPermission(err error) bool {
	kinds := []error{forge.ErrForbidden, forge.ErrAuth, wire.ErrDenied, wire.ErrProtected}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// hintTime bounds what is asked after a failure.
const hintTime = 20 * time.Second

// findHints looks for what is missing, and says how to mend it.
func (j *job) findHints(ctx context.Context) {
	if j.remote == nil || j.forge == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	for _, f := range j.runDoctor(ctx, true) {
		if f.State == doctor.Missing {
			j.log.Warning(formatFinding(f))
		}
	}
}

func formatFinding(f doctor.Finding) string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s\n%s", f.Check, f.Detail, f.Fix))
}

// runDoctor is uwf doctor with what this job has.
func (j *job) runDoctor(ctx context.Context, after bool) []doctor.Finding {
	o := doctor.Options{
		Forge: j.forge, Remote: j.remote, Branch: j.in.StateBranch, StateRemote: true, Label: j.in.Label, Workflow: j.env.WorkflowFile,
		Server: j.env.ServerURL + "/" + j.env.Repository, InJob: true, Rand: j.f.Rand,
		ReadOnly: j.in.Command == ci.CommandRun,
	}
	if j.ev.Subject != nil {
		o.Issue = j.ev.Subject.Number
	}
	var c *config.Config
	if j.jf != nil && j.unset == nil {
		var err error
		if c, err = j.jf.Config(); err == nil {
			o.Branch = cmp.Or(o.Branch, c.State.Branch)
		}
	}
	if !after {
		o.Files, o.Inputs, o.CheckInputs = os.DirFS(j.definitionsPath()), InputNames(), CheckInputs
		doctor.Known(&o, c)
		if c != nil {
			o.Policies = c.Policies.ListBounds()
		}
		if j.unset != nil {
			o.NoSettings = app.Message(j.unset)
		} else if ci.RunsAgents(j.in.Command) { // that job has no key
			doctor.AskModel(&o, j.jf, c)
		}
	}
	return doctor.Check(ctx, o)
}

// runDoctorCommand is the command doctor.
func (j *job) runDoctorCommand(ctx context.Context) error {
	found := j.runDoctor(ctx, false)
	for _, f := range found {
		text := formatFinding(f)
		switch {
		case f.State == doctor.Missing && f.Required:
			j.log.Error(ci.Annotation{Title: "uwf doctor", Message: text})
		case f.State == doctor.Missing:
			j.log.Warning(text)
		default:
			j.log.writeLine("%s: %s", f.State, text)
		}
	}
	if doctor.Failed(found) {
		return &toldError{errMissing}
	}
	return nil
}

var errMissing = errors.New("something is missing without which nothing works: see above")
