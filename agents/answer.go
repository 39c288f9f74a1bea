package agents

import (
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// MaxAnswer is the size of an answer in bytes that can still be stored.
const MaxAnswer = 1 << 20

// Answer is what an agent has to say at the end of its work.
type Answer struct {
	// Text is Markdown with frontmatter, as the prompt asks for it.
	Text string
	// Detail is a staged node that tells how the answer came about. Empty: one that
	// only says how long it took.
	Detail node.Hash
	// Usage is what the run cost so far.
	Usage record.Usage
}

// AnswerError: the answer does not fit what the role has to give. The agent may
// try again.
type AnswerError struct {
	// Complaint is what to tell the agent.
	Complaint string
	Err       error
	// Incomplete: the model did not come to its end, so that nobody can read the answer either.
	Incomplete bool
}

func (e *AnswerError) Error() string { return "the answer can't be taken: " + e.Err.Error() }

func (e *AnswerError) Unwrap() error { return e.Err }

// TakeAnswer takes the fields and the body out of an answer. The error is an
// *AnswerError when another answer may do better.
func TakeAnswer(c *Context, text string) (extract.Result, error) {
	schema, err := c.OutputSchema()
	if err != nil {
		return extract.Result{}, err
	}
	res, err := readAnswer(c, schema, text)
	if err == nil {
		return res, nil
	}
	if errors.Is(err, extract.ErrSchema) {
		return res, err
	}
	return res, &AnswerError{Complaint: extract.Complaint(err, schema, c.Task.Statuses), Err: err}
}

func readAnswer(c *Context, schema any, text string) (extract.Result, error) {
	if len(text) > MaxAnswer {
		return extract.Result{}, &extract.OutputError{
			Reason: extract.ErrTooLarge, Detail: fmt.Sprintf("%d bytes; at most %d are stored", len(text), MaxAnswer),
		}
	}
	if c.Task.Suspends {
		if res, asks, err := extract.Suspension(text); asks {
			return res, err
		}
	}
	res, err := extract.Frontmatter(text, schema)
	if err == nil && slices.Contains(c.Task.Closed, res.Status) {
		return res, &extract.OutputError{Reason: extract.ErrStatus, Detail: fmt.Sprintf("%q needs a person's approval, and there is none: %s", res.Status, c.Task.ClosedWhy)}
	}
	if err != nil || len(c.Task.Statuses) == 0 || res.Status == "" && c.Task.StatusOptional { // there is a way on without one
		return res, err
	}
	return res, extract.CheckStatus(res.Status, c.Task.Statuses)
}

// composeRead reads an answer and stages its output and body. It returns the step
// that Commit stages.
func composeRead(c *Context, s *Stage, a Answer) (record.Step, error) {
	res, err := TakeAnswer(c, a.Text)
	if err != nil {
		return record.Step{}, err
	}
	return composeStep(c, s, a, res)
}

// composeExtracted is composeRead for an answer whose fields a model has read: the
// output is what it found, the body is the whole answer.
func composeExtracted(c *Context, s *Stage, a Answer, found Extracted) (record.Step, error) {
	a.Usage.Turns += found.Usage.Turns
	a.Usage.InputTokens += found.Usage.InputTokens
	a.Usage.OutputTokens += found.Usage.OutputTokens
	return composeStep(c, s, a, found.Result)
}

func composeStep(c *Context, s *Stage, a Answer, res extract.Result) (_ record.Step, err error) {
	t := c.Task
	now := s.now().UnixMilli()
	step := record.Step{
		Start: t.Start, Prev: t.Prev, Role: t.Role, Agent: t.Agent, EdgePrompt: t.EdgePrompt, Cwd: t.Cwd,
		StartedAtMs: t.StartedAtMs, CompletedAtMs: max(now, t.StartedAtMs), Detail: a.Detail,
	}
	usage := a.Usage
	usage.DurationMs = step.CompletedAtMs - step.StartedAtMs
	step.Usage = &usage
	if step.Output, err = s.Put(outputType(c, res), res.Output); err != nil {
		return record.Step{}, err
	}
	if res.Body != "" {
		body, err := s.Put(node.String, res.Body)
		if err != nil {
			return record.Step{}, err
		}
		step.Body = &body
	}
	if step.Detail == "" {
		if step.Detail, err = s.Put(record.BrokerDetailSchema, map[string]any{
			"sessionId": fmt.Sprintf("%s-%d", t.Thread, t.Step), "duration": usage.DurationMs, "turnCount": usage.Turns,
		}); err != nil {
			return record.Step{}, err
		}
	}
	return step, nil
}

// outputType is the schema of what was read: the role's, or that of a question to
// a person, which any role may ask where the workflow allows it.
func outputType(c *Context, res extract.Result) node.Hash {
	if c.Task.Suspends && res.Status == workflow.Suspend {
		return record.SuspendOutputSchema
	}
	return c.Task.OutputSchema
}

// Commit reads an answer, checks it against the task and stages the step: output,
// body, detail and StepNode. The handle is what the agent prints as its last line.
func Commit(c *Context, s *Stage, a Answer) (Handle, error) {
	step, err := composeRead(c, s, a)
	if err != nil {
		return Handle{}, err
	}
	return stageStep(s, step)
}

// CommitExtracted is Commit for an answer whose fields a model has read.
func CommitExtracted(c *Context, s *Stage, a Answer, found Extracted) (Handle, error) {
	step, err := composeExtracted(c, s, a, found)
	if err != nil {
		return Handle{}, err
	}
	return stageStep(s, step)
}

func stageStep(s *Stage, step record.Step) (Handle, error) {
	h, err := s.PutStep(step)
	if err != nil {
		return Handle{}, err
	}
	return Handle{StepHash: h, Usage: *step.Usage}, nil
}
