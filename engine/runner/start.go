package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// asked is a thread that somebody wants.
type asked struct {
	subject  *event.Subject // nil: none
	workflow string
	key      string // after the workflow's name; empty: that of the subject
	// more is what is added to the subject's text.
	more string
	// byCommand: somebody waits for an answer.
	byCommand bool
}

// labeled starts a thread where our label was put on.
func (j *job) labeled(ctx context.Context) error {
	if !j.addsLabel() {
		return j.quiet(fmt.Sprintf("the label is not %s", j.label()))
	}
	return j.fromSubject(ctx)
}

// addsLabel reports whether the event put our label on.
func (j *job) addsLabel() bool {
	label := j.label()
	return slices.ContainsFunc(j.ev.Added, func(l string) bool { return strings.EqualFold(l, label) })
}

// assigned starts a thread where the issue was given to uwf's account; or to anybody,
// if it has our label, and there never was a thread for it.
func (j *job) assigned(ctx context.Context) error {
	s := j.ev.Subject
	if j.ours(j.ev.Assignee) {
		return j.fromSubject(ctx)
	}
	label := j.label()
	if s == nil || !slices.ContainsFunc(s.Labels, func(l string) bool { return strings.EqualFold(l, label) }) {
		return j.quiet(fmt.Sprintf("it was assigned to %s, who is not uwf", j.ev.Assignee))
	}
	there, err := j.find(ctx, *s)
	switch {
	case err != nil:
		return err
	case there != nil:
		return j.quiet(fmt.Sprintf("thread %s is about it already", there.id))
	}
	return j.fromSubject(ctx)
}

func (j *job) fromSubject(ctx context.Context) error {
	if j.ev.Subject == nil {
		return j.quiet("the event names no issue and no pull request")
	}
	return j.start(ctx, asked{subject: j.ev.Subject, workflow: j.in.Workflow, more: j.in.Prompt})
}

// plain starts a thread with the prompt of the inputs.
func (j *job) plain(ctx context.Context) error {
	key := promptKey(j.Job.Run)
	if j.Job.Name != "" {
		key += "/" + j.Job.Name
	}
	return j.start(ctx, asked{subject: j.ev.Subject, workflow: j.in.Workflow, key: key, more: j.in.Prompt})
}

// promptKey begins the keys of threads that a run's jobs start for a prompt.
func promptKey(run string) string { return "run/" + run }

// start starts a thread, or takes on the one with the same key, and goes on with it.
func (j *job) start(ctx context.Context, a asked) error {
	// A schedule has nobody behind it: it runs the default branch's own file.
	if j.ev.Kind != event.Schedule {
		ok, why, err := j.mayStart(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return j.denied(ctx, why)
		}
	}
	req, err := j.request(ctx, a)
	if err != nil || req == nil {
		return j.unstarted(ctx, a, err)
	}
	if over, err := j.overAlready(ctx, req.Key); err != nil || over {
		return err
	}
	started, err := j.Engine.Start(ctx, *req)
	if err != nil {
		return j.unstarted(ctx, a, err)
	}
	j.hook(nil, "started")
	j.out.Thread, j.out.Head, j.out.NextRole, j.out.Status = started.Thread, started.Head, started.Role, started.Status
	if !started.Existed {
		j.made = started.Thread
		return j.goOn(ctx, started.Thread, started.Head)
	}
	j.Out.Notice(fmt.Sprintf("thread %s is there already, with the key %s: it is taken on", started.Thread, req.Key))
	if a.byCommand && j.Job.Attempt <= 1 {
		if err := j.refuse(ctx, started.Thread, verbStart, "There is a thread already; it is taken on where nothing runs."); err != nil || started.Suspended != nil {
			return err
		}
	}
	head, err := j.present(ctx, started.Thread)
	if err != nil {
		return err
	}
	return j.goOn(ctx, started.Thread, head)
}

// denied ends a job that somebody without the right started.
func (j *job) denied(ctx context.Context, why string) error {
	if j.ev.Subject != nil && j.unknown {
		// Whoever can't be known may well have the right: they are told how to say so.
		// Strangers can't be told from them, so it is said once, and not to each.
		if err := j.refuseOnce(ctx, j.ev.Subject.Number, sentence(why)); err != nil {
			j.warn(fmt.Sprintf("#%d could not be answered", j.ev.Subject.Number), err)
		}
	}
	return j.quiet("not allowed: " + why)
}

// request puts together what a new thread begins with; nil: there is to be none, and
// the reason has been told.
func (j *job) request(ctx context.Context, a asked) (*thread.StartRequest, error) {
	def, err := j.Definitions.Resolve(ctx, a.workflow)
	if err != nil {
		return nil, err
	}
	g, err := j.ground(ctx, a.subject, def.Definition)
	if err != nil || g == nil {
		return nil, err
	}
	key := a.key
	if key == "" {
		key = picture.SubjectKey(a.subject.Pull, a.subject.Number)
	}
	if !strings.HasPrefix(key, "run/") {
		key = def.Definition.Name + "/" + key
	}
	id, err := j.newID()
	if err != nil {
		return nil, err
	}
	trigger := j.newTrigger(a.subject, g)
	trigger.Former = j.formerPull(ctx, a.subject)
	req := &thread.StartRequest{
		ID: id, Workflow: def.Hash, Nodes: def.Nodes, Prompt: j.words(a), Base: g.base, Branch: g.branch, Key: key,
		Trigger: trigger.Payload(),
	}
	if a.subject != nil {
		req.Title = sanitize.Title(sanitize.Incoming(a.subject.Title))
	}
	if j.in.MaxSteps > 0 {
		req.Limits = map[string]float64{"maxSteps": float64(j.in.MaxSteps)}
	}
	return req, nil
}

// maxFormer is how many earlier threads about an issue are looked up.
const maxFormer = 10

// formerPull is the pull request that the newest earlier thread about an issue led to; 0:
// none. Such threads are found by their comments, so that no history is read for an issue
// that never had one. What the comments say is not believed: the history has to say it.
func (j *job) formerPull(ctx context.Context, s *event.Subject) int {
	if s == nil || s.Pull || s.Quiet {
		return 0
	}
	list, err := j.Forge.Comments(ctx, s.Number)
	var ids []gitcas.ThreadID
	for _, c := range slices.Backward(list) {
		id, ok := report.FindMarker(c.Body)
		if t := gitcas.ThreadID(id); ok && t.Valid() && len(ids) < maxFormer {
			ids = append(ids, t)
		}
	}
	pull := 0
	if err == nil && len(ids) > 0 {
		pull, err = j.pullOf(ctx, ids, picture.SubjectKey(s.Pull, s.Number))
	}
	if err != nil {
		j.warn(fmt.Sprintf("earlier threads about #%d could not be looked for", s.Number), err)
	}
	return pull
}

// pullOf is the pull request of that one of the threads that ended last, of those that are
// about a subject and have one. Ids are what somebody wrote into a comment: they don't
// make a job read more history than a command may.
func (j *job) pullOf(ctx context.Context, ids []gitcas.ThreadID, subject string) (pull int, err error) {
	store := j.Engine.Store
	v, err := store.Load(ctx)
	if errors.Is(err, gitcas.ErrNoStore) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	from := slices.MinFunc(ids, func(a, b gitcas.ThreadID) int { return a.Time().Compare(b.Time()) }).Time()
	if back := v.Time().Add(-searchBack); from.Before(back) {
		from = back
	}
	err = store.HistorySince(ctx, v, from, func(e gitcas.Ended) error {
		if e.PR != 0 && slices.Contains(ids, e.Thread) && picture.About(e.Key, subject) {
			pull = e.PR
			return gitcas.ErrStop
		}
		return nil
	})
	return pull, err
}

// ground is where a thread's work begins.
type ground struct {
	base   string
	branch string // a pull request's own; empty: one of the thread's
	// author wrote the issue or pull request; where approvals depend on it, as the forge
	// says.
	author   string
	authorID int64
}

// ground finds out where the work begins: at the default branch, or on the pull
// request's own branch. Whose branch that is, the forge is asked and not the payload.
// Nil: nowhere, which has been told.
func (j *job) ground(ctx context.Context, s *event.Subject, def *workflow.Definition) (*ground, error) {
	if s != nil && !s.Open {
		if j.ev.Command != nil {
			j.answer(ctx, s.Number, "It is closed: open it again first.")
		}
		return nil, j.quiet(fmt.Sprintf("#%d is closed", s.Number))
	}
	trunk, err := j.defaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil {
		base, err := j.Base(ctx, trunk)
		return &ground{base: base}, err
	}
	if !s.Pull {
		g := &ground{author: s.Author, authorID: s.AuthorID}
		if def.NeedsApproval() { // then it matters who wrote it
			issue, err := j.Forge.Issue(ctx, s.Number)
			if err != nil {
				return nil, fmt.Errorf("read issue #%d: %w", s.Number, err)
			}
			g.author, g.authorID = issue.Author, issue.AuthorID
		}
		g.base, err = j.Base(ctx, trunk)
		return g, err
	}
	pull, err := j.Forge.Pull(ctx, s.Number)
	if err != nil {
		return nil, fmt.Errorf("read pull request #%d: %w", s.Number, err)
	}
	why := ""
	switch head := pull.Head; {
	case !strings.EqualFold(head.Repo, j.Job.Repository):
		why = "its branch is in another repository, and no agent ever runs on the branch of a fork"
	case !pull.Open:
		why = "it is closed"
	case head.Name == trunk || head.Name == j.Job.StateBranch:
		why = fmt.Sprintf("its branch is %s, on which no agent works", head.Name)
	}
	if why != "" {
		j.answer(ctx, s.Number, fmt.Sprintf("uwf doesn't work on this pull request: %s.", why))
		return nil, j.quiet(fmt.Sprintf("pull request #%d: %s", s.Number, why))
	}
	base, err := j.Base(ctx, pull.Head.Name)
	return &ground{base: base, branch: pull.Head.Name, author: pull.Author, authorID: pull.AuthorID}, err
}

// words is the prompt: what the inputs or the command say, then the subject's text.
// All of it is shown to agents as text from outside.
func (j *job) words(a asked) string {
	var parts []string
	if s := a.subject; s != nil {
		what := "Issue"
		if s.Pull {
			what = "Pull request"
		}
		parts = append(parts, fmt.Sprintf("# %s #%d: %s", what, s.Number, sanitize.Title(sanitize.Incoming(s.Title))))
		if body := strings.TrimSpace(sanitize.Incoming(s.Body)); body != "" {
			parts = append(parts, body)
		}
	}
	if more := strings.TrimSpace(sanitize.Incoming(a.more)); more != "" {
		if len(parts) > 0 {
			more = "## What is wanted\n\n" + more
		}
		parts = append(parts, more)
	}
	return strings.Join(parts, "\n\n")
}

func (j *job) newID() (gitcas.ThreadID, error) {
	id, err := ulid.New(ulid.Timestamp(j.Now().UTC().Truncate(time.Millisecond)), j.Rand)
	if err != nil {
		return "", fmt.Errorf("make a thread id: %w", err)
	}
	return gitcas.ThreadID(id.String()), nil
}

// unstarted tells those who wait for it that there will be no thread.
func (j *job) unstarted(ctx context.Context, a asked, err error) error {
	if err == nil || a.subject == nil || passing(err) {
		return err
	}
	j.answer(ctx, a.subject.Number, j.couldNot("start a thread", err))
	return err
}

// passing reports whether an error says nothing about what was asked for: a re-run of
// the job may do.
func passing(err error) bool {
	for _, kind := range []error{wire.ErrUnreachable, wire.ErrLostRace, forge.ErrUnreachable, forge.ErrLimited, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// answer writes a comment that belongs to no thread.
func (j *job) answer(ctx context.Context, number int, text string) {
	ctx, cancel := effectContext(ctx)
	defer cancel()
	var err error
	if c := j.ev.Command; c != nil {
		err = j.reply(ctx, number, report.Reply{Kind: report.NotNow, Verb: c.Verb, Why: text})
	} else {
		var body string
		if body, err = j.clean("<!-- uwf:note -->\n" + sanitize.Outgoing(text, sanitize.Options{})); err == nil {
			_, err = j.Forge.CreateComment(ctx, number, body)
			err = j.noteAnswer(err)
		}
	}
	if err != nil {
		j.warn(fmt.Sprintf("#%d could not be answered", number), err)
	}
}

// sameRun is how long a run can be started again: GitHub keeps it for so long.
const sameRun = 35 * 24 * time.Hour

// overAlready reports whether this is the re-run of a job whose thread has come to its
// end: it must not begin once more.
func (j *job) overAlready(ctx context.Context, key string) (bool, error) {
	if j.Job.Attempt <= 1 {
		return false, nil
	}
	store := j.Engine.Store
	v, err := store.Load(ctx)
	if errors.Is(err, gitcas.ErrNoStore) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, alive := thread.Find(v, key); alive {
		return false, nil
	}
	var over *gitcas.Ended
	err = store.HistorySince(ctx, v, v.Time().Add(-sameRun), func(e gitcas.Ended) error {
		if e.Key != key {
			return nil
		}
		past, err := store.LoadEnded(ctx, v, e)
		if err != nil {
			return err
		}
		sum, err := past.Summary(ctx, e.Thread)
		if err == nil && picture.ReadTrigger(sum.Start.Trigger).Run == j.id {
			over = &e
			return gitcas.ErrStop
		}
		return err
	})
	if err != nil || over == nil {
		return false, err
	}
	j.out.Thread, j.out.Head, j.out.Done, j.out.PullRequest = over.Thread, over.Head, true, over.PR
	j.out.Status, j.out.Step = over.Reason, len(over.Steps)
	return true, j.quiet(fmt.Sprintf("thread %s, which this run started, is over (%s)", over.Thread, over.Reason))
}

// present is the head at which this job takes a thread on: where it stands, or, where
// an earlier attempt of this very run has done its step, the head before that, so that
// only what follows from the step is done.
func (j *job) present(ctx context.Context, id gitcas.ThreadID) (node.Hash, error) {
	v, err := j.Engine.Store.Load(ctx, id)
	if err != nil {
		return "", err
	}
	entry, alive := v.Entry(id)
	if !alive {
		return "", nil
	}
	chain, err := v.Chain(ctx, id)
	if err != nil {
		return "", err
	}
	n := len(chain.Steps)
	if n == 0 || chain.Steps[n-1].Run == nil || chain.Steps[n-1].Run.ID != j.id {
		return entry.Head, nil
	}
	if prev := chain.Steps[n-1].Prev; prev != nil {
		return *prev, nil
	}
	return chain.StartHash, nil
}

// sentence is a reason as one.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + s[size:] + "."
}
