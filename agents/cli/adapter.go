package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	envURL, envKey = gateway.EnvURL, gateway.EnvKey
	// grace is less than what this process itself gets between SIGTERM and SIGKILL.
	grace = 700 * time.Millisecond
	// maxOutput bounds what a CLI may print on stdout, and maxStderr what is kept of stderr.
	maxOutput = 256 << 20
	maxStderr = 32 << 10
	// lingerFor is how long a CLI may stay after its turn ended: a command that it began in the
	// background keeps some from ending as long as it runs.
	lingerFor = 30 * time.Second
	// shownStderr is how much of stderr an error shows, in bytes.
	shownStderr = 2 << 10
)

// Agent is one conversation with a CLI. It implements agents.Adapter; use a new one for each
// run.
type Agent struct {
	CLI CLI
	// Linger is how long the CLI may stay after its answer. Zero: half a minute.
	Linger time.Duration

	call  call
	turns turns
	began time.Time
}

var _ agents.Adapter = (*Agent)(nil)

// Run does the task. It implements agents.Adapter.
func (a *Agent) Run(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	a.call, a.began = newCall(s, os.Geteuid() == 0), s.Now()
	a.call.Session = newSessionID()
	if err := a.checkSession(s); err != nil {
		return agents.Answer{}, err
	}
	if err := a.writeFiles(); err != nil {
		return agents.Answer{}, err
	}
	return a.askProgram(ctx, s, s.Task.Prompt)
}

// Continue resumes the session with the complaint. What the first run has written for such
// tools into the workspace takes no effect. It implements agents.Adapter.
func (a *Agent) Continue(ctx context.Context, s *agents.Session, complaint string) (_ agents.Answer, err error) {
	if a.call.Session == "" {
		return agents.Answer{}, fmt.Errorf("%s gave no session that could go on", a.CLI.Program)
	}
	restore, err := HideSettings(ctx, s, a.CLI.Hide...)
	if err != nil {
		return agents.Answer{}, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	a.call.Resume = true
	return a.askProgram(ctx, s, complaint)
}

// newSessionID is a random UUID.
func newSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// checkSession refuses what can't work before anything is run.
func (a *Agent) checkSession(s *agents.Session) error {
	switch {
	case s.Getenv(agents.EnvProgram) == "":
		return fmt.Errorf("%s is not set: uwf sets it when it runs this agent", agents.EnvProgram)
	case a.call.Home == "" || a.call.Temp == "":
		return errors.New("HOME or TMPDIR is not set: uwf sets them when it runs this agent")
	case a.call.URL != "" && a.call.Model == "":
		return fmt.Errorf("%s needs a model: set defaultModel, or modelOverrides for this role", a.CLI.Name)
	}
	return nil
}

// writeFiles writes the CLI's files into HOME.
func (a *Agent) writeFiles() error {
	if a.CLI.files == nil {
		return nil
	}
	if err := WriteHome(a.call.Home, a.CLI.files(a.call)); err != nil {
		return fmt.Errorf("prepare the HOME of %s: %w", a.CLI.Program, err)
	}
	return nil
}

// askProgram runs the CLI with a message, and takes its answer. What it did is staged also when it
// fails.
func (a *Agent) askProgram(ctx context.Context, s *agents.Session, message string) (agents.Answer, error) {
	r := &report{
		tell: func(line string) { _, _ = fmt.Fprintf(s.Stderr, "%s: %s\n", a.CLI.Name, text.Line(line)) },
		fits: func(said string) bool { _, err := agents.TakeAnswer(s.Context, said); return err == nil },
	}
	res, stderr, err := a.runProgram(ctx, s, message, r)
	if a.CLI.finish != nil {
		a.CLI.finish(r, a.call, stderr)
	}
	if ended := err == nil && res.Stopped == nil && res.Code == 0 && r.Failure == ""; ended && !r.Over {
		r.endTurn(r.last)
	}
	if r.Session != "" {
		a.call.Session = r.Session
	}
	detail, derr := a.turns.stageTurns(s, a.call, r, a.began)
	if err == nil {
		err = a.judgeEnd(res, r, stderr)
	}
	if err = errors.Join(err, derr); err != nil {
		return agents.Answer{}, errors.Join(err, s.DescribeEnding(ctx))
	}
	return agents.Answer{Text: r.Text, Detail: detail}, nil
}

// runProgram runs the CLI to its end, with the message on its stdin.
func (a *Agent) runProgram(ctx context.Context, s *agents.Session, message string, r *report) (_ proc.Result, stderr string, err error) {
	input := filepath.Join(a.call.Temp, "uwf-message.md")
	if err := os.WriteFile(input, []byte(message), 0o600); err != nil {
		return proc.Result{}, "", err
	}
	in, err := os.Open(input)
	if err != nil {
		return proc.Result{}, "", err
	}
	defer func() { _ = in.Close() }()
	_ = os.Remove(a.call.answerFile()) // of an earlier run
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	linger := cmp.Or(a.Linger, lingerFor)
	lingers := time.AfterFunc(math.MaxInt64, func() { stop(errLingers) })
	defer lingers.Stop()
	take := func(line []byte) {
		before := r.Over
		switch a.CLI.read(r, line); {
		case r.Over && !before:
			lingers.Reset(linger)
		case !r.Over:
			lingers.Stop()
		}
	}
	out, errs := &lines{whole: a.CLI.whole, most: maxOutput, take: take}, &headtail.Tail{Keep: maxStderr}
	res, err := proc.NewRunner(s.Getenv(proc.MarkName)).Run(ctx, proc.Spec{
		Argv: slices.Concat([]string{s.Getenv(agents.EnvProgram)}, a.CLI.argv(a.call)),
		Dir:  s.Workspace, Env: a.environ(s), Stdin: in, Stdout: out, Stderr: errs, Grace: grace,
	})
	out.endLines()
	return res, errs.String(), err
}

// errLingers: the CLI had said all that it had to say, and did not end.
var errLingers = errors.New("it did not end after its answer")

// environ is all that a CLI finds in its environment.
func (a *Agent) environ(s *agents.Session) []string {
	return append(Environ(s, false), a.CLI.environ(a.call)...)
}

// judgeEnd says why a run gave no answer. One that was given stands, however the CLI ended after it.
func (a *Agent) judgeEnd(res proc.Result, r *report, stderr string) error {
	if errors.Is(res.Stopped, errLingers) {
		r.tell(fmt.Sprintf("%s had ended its turn and went on running, most likely for a command in the background: it was ended", a.CLI.Program))
		res = proc.Result{}
	}
	err := a.explainEnd(res, r, stderr)
	if err != nil && r.hasAnswer() {
		r.tell("its answer stands, though " + err.Error())
		return nil
	}
	return err
}

func (a *Agent) explainEnd(res proc.Result, r *report, stderr string) error {
	fail := func(format string, args ...any) error {
		err := fmt.Errorf(a.CLI.Program+" "+format, args...)
		if stderr != "" {
			err = fmt.Errorf("%w\n%s", err, stderr[max(0, len(stderr)-shownStderr):])
		}
		return err
	}
	switch {
	case res.Stopped != nil:
		return fail("was stopped: %w", res.Stopped)
	case r.Failure != "":
		return fmt.Errorf("%s failed: %s", a.CLI.Program, text.Cut(text.Line(r.Failure), 1000))
	case res.Signal == syscall.SIGKILL:
		return fail("was killed; the system does that when memory runs out")
	case res.Signal != 0:
		return fail("ended by signal %d (%s)", int(res.Signal), res.Signal)
	case res.Code != 0:
		return fail("ended with exit code %d", res.Code)
	case r.Broken > 0 && strings.TrimSpace(r.Text) == "":
		return fail("printed %d lines that are not what version %s prints, and no answer: see uwf agent check %s", r.Broken, a.CLI.Versions.Tested, a.CLI.Name)
	case strings.TrimSpace(r.Text) == "":
		return fail("gave no answer: its last message was empty")
	}
	return nil
}
