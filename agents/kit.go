package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// MaxCorrections is how often an agent is asked again when its answer does not
// fit the role's schema or names a status without an edge.
const MaxCorrections = 2

// Adapter is an agent in Go: it turns a task into an answer. It stages its turns
// as they come, so that they are kept when it is killed.
type Adapter interface {
	// Run does the task. An error that is an *AnswerError is corrected, as an answer is.
	Run(ctx context.Context, s *Session) (Answer, error)
	// Continue goes on with the same conversation after an answer that could not be
	// taken. The complaint says why, in words for a model.
	Continue(ctx context.Context, s *Session, complaint string) (Answer, error)
}

// Finisher is an Adapter that has the last word on its step and on what is
// printed for it. Agents that test the protocol need it; others don't.
type Finisher interface {
	// Finish gets the step that would be staged and returns the line to print.
	Finish(s *Session, step record.Step) (line string, err error)
}

// LiteralAdapter is an Adapter whose answers are taken as they are or not at all: no
// model is asked to read them, whatever the configuration says.
type LiteralAdapter interface {
	// Literal reports whether that holds for this session.
	Literal(s *Session) bool
}

// Session is what an adapter works with.
type Session struct {
	*Context
	Stage     *Stage
	Workspace string    // the folder to work in
	Environ   []string  // of this process
	Stderr    io.Writer // for people
	Now       func() time.Time

	extractor Extractor
}

// Process is an agent's process as the kit sees it.
type Process struct {
	Args    []string // the last two arguments: <thread-id> <role>
	Environ []string
	Dir     string // working directory: the workspace
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time

	// Transport carries the requests to the model that reads an unreadable answer.
	// Nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// Main runs an agent as the main function of a program of its own: it reads
// arguments and environment, ends on SIGINT and SIGTERM, and returns the exit
// code, 0 or 1.
func Main(a Adapter) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.Getwd()
	if err == nil {
		err = RunAdapter(ctx, a, Process{
			Args: os.Args[max(0, len(os.Args)-2):], Environ: os.Environ(), Dir: dir,
			Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
		})
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// RunAdapter does one task: adapter, frontmatter, up to MaxCorrections corrections, then
// the model that is set for reading answers, and the staged step, whose handle is
// the last line on stdout. What the adapter staged stays there when it fails.
func RunAdapter(ctx context.Context, a Adapter, p Process) (err error) {
	s, err := OpenSession(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	step, err := s.runAdapter(ctx, a)
	if err != nil {
		return err
	}
	line, err := finishSession(s, a, step)
	if err != nil || line == "" {
		return err
	}
	if _, err := fmt.Fprintln(p.Stdout, line); err != nil {
		return fmt.Errorf("printing the handle: %w", err)
	}
	return nil
}

// OpenSession opens the folders of the protocol and checks that they belong to
// the thread and role of the arguments.
func OpenSession(p Process) (*Session, error) {
	c, err := LoadContext(sandbox.Getenv(p.Environ, EnvContext))
	if err != nil {
		return nil, err
	}
	if err := checkArgs(c, p.Args); err != nil {
		return nil, err
	}
	stage, err := OpenStage(sandbox.Getenv(p.Environ, EnvStage), c, p.Now)
	if err != nil {
		return nil, err
	}
	return &Session{
		Context: c, Stage: stage, Workspace: p.Dir, Environ: p.Environ, Stderr: p.Stderr, Now: p.Now,
		extractor: Extractor{Context: c, Environ: p.Environ, Transport: p.Transport},
	}, nil
}

func checkArgs(c *Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("an agent is called with <thread-id> <role>, not with %d arguments", len(args))
	}
	if args[0] != string(c.Task.Thread) || args[1] != c.Task.Role {
		return fmt.Errorf("called for role %s of thread %s, but %s holds the task of role %s of thread %s",
			args[1], args[0], EnvContext, c.Task.Role, c.Task.Thread)
	}
	return nil
}

// Close releases the session's folder.
func (s *Session) Close() error { return s.Stage.Close() }

// Getenv returns a variable of the session's environment; empty where not set.
func (s *Session) Getenv(name string) string { return sandbox.Getenv(s.Environ, name) }

// runAdapter runs the adapter until its answer can be taken.
func (s *Session) runAdapter(ctx context.Context, a Adapter) (record.Step, error) {
	answer, err := a.Run(ctx, s)
	for corrections := 0; ; corrections++ {
		failed := err // of the run itself
		var step record.Step
		if err == nil {
			step, err = s.takeWhole(ctx, answer)
		}
		var bad *AnswerError
		switch {
		case !errors.As(err, &bad):
			return step, err
		case failed != nil && (corrections == MaxCorrections || ctx.Err() != nil):
			return record.Step{}, err
		case corrections == MaxCorrections:
			return s.extractOrFail(ctx, a, answer, bad)
		}
		_, _ = fmt.Fprintf(s.Stderr, "%v; asking again (%d of %d)\n", bad, corrections+1, MaxCorrections)
		answer, err = a.Continue(ctx, s, bad.Complaint)
	}
}

// takeWhole is composeRead for an answer that its model has ended.
func (s *Session) takeWhole(ctx context.Context, answer Answer) (record.Step, error) {
	if err := s.checkEnding(ctx, answer.Text); err != nil {
		return record.Step{}, err
	}
	return composeRead(s.Context, s.Stage, answer)
}

// extractOrFail has a model read the answer, where one may; else it fails.
func (s *Session) extractOrFail(ctx context.Context, a Adapter, answer Answer, bad *AnswerError) (record.Step, error) {
	failed := fmt.Errorf("after %d corrections: %w", MaxCorrections, bad)
	l, ok := a.(LiteralAdapter)
	if bad.Incomplete || !s.extractor.Enabled() || ok && l.Literal(s) {
		return record.Step{}, errors.Join(failed, s.stageAnswer(answer))
	}
	_, _ = fmt.Fprintf(s.Stderr, "%v; asking model %s to read it\n", bad, s.Task.Extract.Name)
	found, err := s.extractor.Read(ctx, answer.Text)
	if err != nil {
		return record.Step{}, errors.Join(failed, err, s.stageAnswer(answer))
	}
	return composeExtracted(s.Context, s.Stage, answer, found)
}

// stageAnswer stages an answer that could not be taken, so that the attempt shows it.
func (s *Session) stageAnswer(a Answer) error {
	text := a.Text
	if len(text) > MaxAnswer {
		text = text[:MaxAnswer/2]
	}
	_, err := s.Stage.Put(node.String, text)
	return err
}

func finishSession(s *Session, a Adapter, step record.Step) (string, error) {
	if f, ok := a.(Finisher); ok {
		return f.Finish(s, step)
	}
	h, err := stageStep(s.Stage, step)
	return h.String(), err
}
