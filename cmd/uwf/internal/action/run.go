package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/runner"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/removal"
)

// maxPayload is the largest event that is read, in bytes; the forge's own limit is 25 MB.
const maxPayload = 32 << 20

// tokenUser is the user name that forges take together with a token.
const tokenUser = "x-access-token"

// actionRun does the job and ends with the job's exit code. All there is to say has
// been said then, in the way that the forge shows it.
func actionRun(ctx context.Context, o *Options) error {
	f := o.Factory
	l := newJobLog(f.IO.Out)
	defer l.closeAll()
	ask := newAsk(f.Getenv)
	secrets := []string{cmp.Or(ask("token"), f.Getenv("GITHUB_TOKEN")), ask("api-key")}
	if f.Getenv("GITHUB_ACTIONS") == "true" { // elsewhere nobody would take the mask out of the log
		l.masks = true
		l.maskSecrets(append(secrets, encodeBasicAuth(secrets[0]))...)
	}
	l.cleanBy(firstRedactor(f.Environ, secrets))
	l.output, l.summary = f.Getenv("GITHUB_OUTPUT"), f.Getenv("GITHUB_STEP_SUMMARY")

	j := &job{f: f, log: l, ask: ask, began: f.Now()}
	out, err := j.runJob(ctx)
	l.writeOutputs(out)
	if err == nil {
		return nil
	}
	j.explainFailure(ctx, err)
	return &app.Exit{Code: app.ExitCodeOf(err)}
}

// toldError is an error of the runner, which has said what there is to say.
type toldError struct{ error }

func (e *toldError) Unwrap() error { return e.error }

// firstRedactor knows the secrets that are known before any settings are read.
func firstRedactor(environ, secrets []string) *redact.Redactor {
	list := redact.FromEnv(environ)
	for i, name := range []string{"token", "api-key"} {
		if secrets[i] != "" {
			list = append(list, redact.Secret{Name: name, Value: secrets[i]})
		}
	}
	r, err := redact.New(redact.Options{Secrets: list})
	if err != nil {
		return nil
	}
	return r
}

// job is one run of the action.
type job struct {
	f     *app.Factory // the process's own
	log   *jobLog
	ask   Ask
	began time.Time

	in      inputs
	env     environment
	ev      event.Event
	misread *event.CommandError // a /uwf line that can't be understood; nil: none
	scratch string              // a folder of this job's own
	dialed  wire.Remote         // the repository
	remote  wire.Remote         // the same, which waits where it is away
	branch  *branch
	forge   forge.Forge
	policy  []byte       // the text of the organisation's; nil: there is none
	ends    time.Time    // when the job's time is over; zero: not known
	jf      *app.Factory // that of the job: the default branch's settings, the inputs
	unset   error        // of the command doctor: why there are no such settings
	kept    *keeper      // the steps that could not be pushed; nil: there are none
}

// scratchTime is how long a job's temporary folder is removed: agents worked in it, and
// the job may have been told to end.
const scratchTime = 2 * time.Second

func (j *job) runJob(ctx context.Context) (out ci.Outcome, err error) {
	if err := j.readJob(); err != nil {
		return out, err
	}
	if j.ev.Kind == event.None {
		// Not even the sweep: this token may be a stranger's, who can do nothing.
		j.log.Notice(cmp.Or(j.ev.Why, "this event is not for uwf: nothing to do"))
		return out, nil
	}
	if err := j.makeScratch(); err != nil {
		return out, err
	}
	defer func() {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scratchTime)
		defer cancel()
		if j.kept != nil {
			if herr := j.kept.handOver(rctx, j.env.Workspace); herr != nil {
				j.log.Warning(fmt.Sprintf("a step that could not be pushed is not left to the next job: %v", herr))
			}
		}
		_ = removal.Tree(rctx, j.scratch, 0) // the job's own temporary folder goes with the job anyway
		if gerr := giveBack(j.env.Workspace); gerr != nil {
			j.log.Warning(fmt.Sprintf("files in the workspace still belong to root: %v", gerr))
		}
	}()
	if err := j.dialRepository(ctx); err != nil {
		return out, j.explainUnready(ctx, err)
	}
	if j.in.Doctor {
		return out, j.runDoctorCommand(ctx)
	}
	w, err := j.makeWorker(ctx)
	if err != nil {
		return out, j.explainUnready(ctx, err)
	}
	r, err := j.makeRunner(ctx, w)
	if err != nil {
		return out, err
	}
	if j.misread != nil {
		out, err = r.AnswerBadCommand(ctx, j.ev, j.misread)
	} else {
		out, err = r.Run(ctx, j.ev)
	}
	if err != nil {
		err = &toldError{err}
	}
	return out, err
}

// readJob reads the inputs, the environment and the event. Nothing is asked yet.
func (j *job) readJob() (err error) {
	if j.env, err = readEnvironment(j.f.Getenv); err != nil {
		return err
	}
	if j.in, err = readInputs(j.ask); err != nil {
		return err
	}
	j.in.Token, j.in.Gitea = cmp.Or(j.in.Token, j.f.Getenv("GITHUB_TOKEN")), j.env.Flavour == forge.Gitea
	if j.in.Token == "" {
		return app.Usagef("there is no token: set the input token (in a job its default is the job's own), or GITHUB_TOKEN")
	}
	j.ev = event.Event{Name: j.env.Event, Kind: event.Plain, Sender: event.User{Login: j.env.Actor}}
	if j.env.Event != "" && j.env.EventPath != "" {
		payload, err := app.ReadRegular(j.env.EventPath, maxPayload)
		if err != nil {
			return fmt.Errorf("read the event (GITHUB_EVENT_PATH): %w", err)
		}
		j.ev, err = event.Parse(j.env.Event, payload)
		if err != nil && !errors.As(err, &j.misread) {
			return &app.UsageError{Err: err}
		}
	}
	if repo := j.ev.Repo.FullName; repo != "" && !strings.EqualFold(repo, j.env.Repository) {
		return app.Usagef("the event is of %s, and the job of %s (GITHUB_REPOSITORY): it can't be told which is meant", repo, j.env.Repository)
	}
	if isPageURL(j.ev.Repo.PageURL) {
		j.env.PageURL = j.ev.Repo.PageURL
	}
	if j.in.Store == "" {
		j.in.Store = j.ev.Inputs["store"]
	}
	return nil
}

// makeScratch makes this job's own folder: the definitions, working folders, caches.
// Agents may run as another user and have to get to what is theirs in it.
func (j *job) makeScratch() (err error) {
	parent := j.f.Getenv("RUNNER_TEMP")
	if parent == "" || !isMine(parent) {
		parent = "" // in a container it is another user's: nothing of root's is to stay there
	}
	if j.scratch, err = os.MkdirTemp(parent, "uwf-*"); err != nil {
		return fmt.Errorf("make a folder for this job: %w", err)
	}
	if err = os.Chmod(j.scratch, 0o711); err == nil { //nolint:gosec // agents are other users
		err = os.Mkdir(j.definitionsPath(), 0o755) //nolint:gosec // the same
	}
	if err != nil {
		return fmt.Errorf("make a folder for this job: %w", err)
	}
	return nil
}

func (j *job) definitionsPath() string { return filepath.Join(j.scratch, "default-branch") }

// dialRepository dials the repository and the forge, reads the default branch, and makes the
// job's Factory.
func (j *job) dialRepository(ctx context.Context) (err error) {
	auth := func(context.Context) (string, string, error) { return tokenUser, j.in.Token, nil }
	if j.dialed, err = j.f.DialAs(j.env.remoteURL(), auth); err != nil {
		return err
	}
	j.f.AtOnce, j.f.Waiting = j.f.AtOnce || j.in.Doctor, j.tellWait
	j.remote = wire.Patient(j.dialed, j.f.Outages())
	token := j.in.Token
	if j.forge, err = forge.New(forge.Options{
		APIURL: j.env.APIURL, Repository: j.env.Repository, Flavour: j.env.Flavour, Token: func() string { return token }, Outages: j.f.Outages(),
	}); err != nil {
		return &app.UsageError{Err: err}
	}
	if j.policy, err = j.in.Policy.read(ctx, forge.Options{APIURL: j.env.APIURL, Flavour: j.env.Flavour, Token: func() string { return token }, Outages: j.f.Outages()}); err != nil {
		return err
	}
	if j.branch, err = openBranch(ctx, j.remote, j.ev.Repo.DefaultBranch); err != nil {
		return err
	}
	if name := j.env.WorkflowName; name != "" && (j.in.Dispatch == "" || j.in.Dispatch == ci.DispatchAuto) {
		j.env.WorkflowFile = j.branch.workflowNamed(ctx, j.env.Flavour, name)
	}
	if j.in.Command == ci.CommandRescue {
		if err = j.inheritInputs(ctx); err != nil {
			return err
		}
	}
	if j.in.StepsPerJob > 1 {
		j.ends = jobDeadline(j.began, jobTime(j.branch.workflowText(ctx, j.env.Flavour, j.env.WorkflowFile), j.env.Name))
	}
	if !j.in.Doctor {
		if err = j.branch.copyTo(ctx, j.definitionsPath(), j.in.Config); err != nil {
			return err
		}
		return j.makeFactory(ctx)
	}
	if err = j.branch.copyTo(ctx, j.definitionsPath(), j.in.Config, ".github", ".gitea"); err != nil {
		return err
	}
	j.unset = j.makeFactory(ctx) // it is a finding
	return ctx.Err()
}

// makeFactory makes the Factory that this job's engine is made of.
func (j *job) makeFactory(ctx context.Context) error {
	environ, err := j.in.settingsEnviron(j.f.Environ, func(env []string) (*config.Config, error) { return j.newFactory(env).Config() })
	if err != nil {
		return err
	}
	j.jf = j.newFactory(environ)
	c, err := j.jf.Config()
	if err != nil {
		return err
	}
	j.log.maskSecrets(lists.Map(config.SecretsOf(c), func(s redact.Secret) string { return s.Value })...)
	red, err := j.jf.Redactor(ctx)
	if err != nil {
		return err
	}
	j.log.cleanBy(red)
	for _, w := range c.Warnings {
		j.log.writeLine("settings: %s", w)
	}
	return j.applyPolicy(c)
}

func (j *job) newFactory(environ []string) *app.Factory {
	f := app.NewAt(j.definitionsPath(), environ, app.IO{In: bytes.NewReader(nil), Out: j.f.IO.Out, Err: j.f.IO.Err})
	f.Now, f.Rand, f.After, f.Machine, f.Hook, f.Silence = j.f.Now, j.f.Rand, j.f.After, j.f.Machine, j.f.Hook, j.f.Silence
	f.SelfCommand, f.Inside, f.DialWire = j.f.SelfCommand, j.f.Inside, j.f.DialWire
	f.Exposed, f.ExpectStore = j.f.Exposed, j.in.Store
	f.AtOnce, f.Until, f.Waiting = j.f.AtOnce, j.ends, j.f.Waiting
	if f.Getenv("UWF_HOME") == "" {
		f.Environ = append(f.Environ, "UWF_HOME="+filepath.Join(j.scratch, "home"))
	}
	f.Job = &app.Job{
		Remote: j.env.remoteURL(), Dialed: j.dialed, Branch: j.in.StateBranch, Root: f.Dir, Config: j.in.Config,
		Policy: j.policy, PolicyName: j.in.Policy.name(),
		Adjust: func(c *config.Config) {
			j.in.adjustConfig(c)
			// What an agent of the default branch needs may lie beside it.
			c.Confine.Read = append(slices.Clone(c.Confine.Read), j.definitionsPath())
		},
	}
	if run := strings.Trim(notWord.ReplaceAllString(j.env.Run, "-"), "-"); run != "" {
		f.Job.CIRun, f.Job.Run = run, run+"-"+j.env.useName(j.f.Getenv, j.ask)
	}
	if j.in.Command == ci.CommandRun {
		f.Job.Wrap = runner.WithoutPushes // it must not write anything, whatever its token could
		f.Job.AgentToken = j.in.Token
	}
	return f
}

// makeWorker puts the engine together.
func (j *job) makeWorker(ctx context.Context) (*worker.Worker, error) {
	w, err := worker.New(ctx, j.jf, worker.Options{
		Agent: j.in.Agent, AllowShell: j.in.AllowShell != nil && *j.in.AllowShell, Timeout: j.in.Timeout, New: true,
		Elsewhere: !ci.RunsAgents(j.in.Command), Observe: j.logEvent, Stderr: j.log.agentWriter(),
	})
	if err != nil {
		return nil, err
	}
	j.keepUnpushed(ctx, w)
	if _, err := os.Lstat(filepath.Join(j.env.Workspace, ".git")); err == nil && j.env.Workspace != "" && ci.RunsAgents(j.in.Command) {
		j.log.writeLine("agents work in a folder of uwf's own, not in the checkout: workspace.prepare installs there what their work needs")
	}
	return w, nil
}

// logEvent tells in the log what goes on.
func (j *job) logEvent(e thread.Event) {
	switch e.Kind {
	case "agent":
		j.log.writeLine("step %d: %s works (%s)", e.Step, e.Role, e.Agent)
	case "sealed":
		j.log.writeLine("step %d: %s%s", e.Step, e.Role, moderator.Arrow(e.Status))
	case "notice":
		j.log.writeLine("note: %s", e.Text)
	case "check":
		j.log.writeLine("check: %s", e.Text)
	}
}

// tellWait tells in the log that a server is away.
func (j *job) tellWait(w outage.Wait) { j.log.writeLine("waiting: %s", w) }

// makeRunner puts the job together.
func (j *job) makeRunner(ctx context.Context, w *worker.Worker) (*runner.Runner, error) {
	loc, err := j.jf.Locate(ctx)
	if err != nil {
		return nil, err
	}
	about := j.env.Job
	about.Name, about.StateBranch, about.Store = j.env.useName(j.f.Getenv, j.ask), loc.Branch, j.in.Store
	about.WorkflowFiles = j.env.Flavour == forge.Gitea || !strings.HasPrefix(j.in.Token, appToken)
	if about.Run == "" {
		about.Run = w.Who.Run
	}
	about.Deadline = j.ends
	in := j.in.Inputs
	in.Artifact = filepath.Join(cmp.Or(j.env.Workspace, j.f.Dir), filepath.FromSlash(in.Artifact))
	return &runner.Runner{
		Engine: w.Stepper, Forge: j.forge, Work: w, Definitions: newDefinitions(j.jf, j.branch.Name), Base: j.baseCommit,
		Inputs: in, Job: about, Out: j.log, Now: j.jf.Now, Rand: j.jf.Rand, Hook: j.jf.Hook,
	}, nil
}

// appToken is how GitHub's tokens of apps begin; the job's own is one of them.
const appToken = "ghs_"

// baseCommit is the commit at the tip of a branch.
func (j *job) baseCommit(ctx context.Context, branch string) (string, error) {
	if branch == "" || branch == j.branch.Name {
		return j.branch.Commit.String(), nil
	}
	return j.jf.Base(ctx, j.remote, branch)
}
