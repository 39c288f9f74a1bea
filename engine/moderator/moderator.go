// Package moderator decides what a thread does next: which role runs, with what
// words and where, or that the thread ends or waits. It is pure: it sees a
// compiled workflow and the outputs so far, and never a store, a clock or an
// agent.
package moderator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/condition"
	"github.com/united-workforce/uwf/internal/lists"
)

// ErrUnknownRole is wrapped where a chain holds a role that the workflow doesn't
// have, or an edge leads to one.
var ErrUnknownRole = errors.New("unknown role")

// ErrNoResumeEdge is wrapped where a thread that has ended is to go on, and its
// workflow has no edge for that.
var ErrNoResumeEdge = errors.New("the workflow has no `resume` edge under $START")

// Thread is what a decision rests on.
type Thread struct {
	// Start is the StartNode's payload. Only conditions look at it.
	Start map[string]any
	// Steps are the outputs, oldest first.
	Steps []Output
}

// Output is what one step of a thread produced.
type Output struct {
	Role string
	// Output holds the fields of the frontmatter.
	Output map[string]any
	// Body is the markdown under the frontmatter, for {{_body}}.
	Body string
	// Node is the StepNode's payload, as far as it is known. Only conditions look
	// at it.
	Node map[string]any
}

// Kind is what happens next.
type Kind uint8

// The kinds of decisions.
const (
	Run     Kind = iota // Decision.Role works next
	End                 // the thread is done
	Suspend             // the thread waits for a person
)

// String is the kind's name in lower case.
func (k Kind) String() string { return [...]string{"run", "end", "suspend"}[k] }

// Decision is what happens next.
type Decision struct {
	Kind Kind
	// Role is who works next; on Suspend, who asked; on End, empty.
	Role string
	// From and Status are the last step's role and status; $START and "" before
	// the first step, status "" where there is none.
	From, Status string
	// Edge is the edge taken; the zero Edge where an agent suspended by itself.
	Edge workflow.Edge
	// Prompt is the edge's prompt, filled in. On End it may be a closing word.
	Prompt string
	// Location is the folder to work in, filled in; empty: the thread's own.
	Location string
	// Reason is what the person is asked, on Suspend.
	Reason string
}

// Next decides what a thread does after its steps. An output that leads nowhere is an
// error, and so is a condition that fails over one (it never counts as false), or a prompt
// that comes out blank, so that the next role would not know what to do: asked before an
// output is committed, Next thus keeps threads from getting stuck.
func Next(d *workflow.Definition, t Thread) (Decision, error) {
	if len(t.Steps) == 0 {
		edge, err := chooseEdge(d, t, workflow.Start, "")
		if err != nil {
			return Decision{}, err
		}
		return followEdge(d, Output{Role: workflow.Start}, "", edge)
	}
	last := t.Steps[len(t.Steps)-1]
	if _, ok := d.Roles[last.Role]; !ok {
		return Decision{}, fmt.Errorf("deciding what follows role %q of workflow %s: %w", last.Role, d.Name, ErrUnknownRole)
	}
	status := StatusOf(d, last)
	if d.AgentSuspends && status == workflow.Suspend {
		reason, _ := last.Output["reason"].(string)
		return Decision{Kind: Suspend, Role: last.Role, From: last.Role, Status: status, Reason: reasonOr(reason, last)}, nil
	}
	edge, err := chooseEdge(d, t, last.Role, status)
	switch {
	case err != nil:
		return Decision{}, err
	case edge == nil:
		return Decision{}, refuseStatus(d, last.Role, status)
	}
	return followEdge(d, last, status, edge)
}

// refuseStatus says that no edge of a role waits for its status; empty: it has none.
func refuseStatus(d *workflow.Definition, role, status string) error {
	key, allowed := d.StatusKeyOf(role), "no status"
	if all := d.Statuses(role); len(all) > 0 {
		allowed = "one of " + strings.Join(all, ", ")
	}
	if status == "" {
		return fmt.Errorf("the output of role %s has no %s; the workflow waits for %s", role, key, allowed)
	}
	return fmt.Errorf("the output of role %s has %s %q, which leads nowhere; the workflow waits for %s", role, key, status, allowed)
}

// StatusOf is the status of an output; empty where it has none, or says so by "_".
func StatusOf(d *workflow.Definition, o Output) string {
	if d.AgentSuspends && workflow.AsksForPerson(o.Output) {
		return workflow.Suspend
	}
	declared := ""
	if d.Declares(o.Role) {
		declared = d.StatusKeyOf(o.Role)
	}
	return workflow.StatusIn(o.Output, declared)
}

// SuspendStatuses lists the statuses of a role that hand the thread to a person.
func SuspendStatuses(d *workflow.Definition, role string) []string {
	var out []string
	for _, s := range d.Statuses(role) {
		if e := edgeWhen(d, role, workflow.OnStatus, s); e != nil && e.To == workflow.Suspend {
			out = append(out, s)
		}
	}
	return out
}

// Resume decides what a suspended thread does once the person has answered: the
// role that asked works again, in the same place, with question and answer.
func Resume(d *workflow.Definition, t Thread, answer string) (Decision, error) {
	asked, err := Next(d, t)
	if err != nil {
		return Decision{}, fmt.Errorf("resuming: %w", err)
	}
	if asked.Kind != Suspend {
		// Suspended by the engine (attempts, limits, a lost branch): the thread
		// goes on where it stood, and the answer goes with the task.
		if asked.Kind == Run && strings.TrimSpace(answer) != "" {
			asked.Prompt = strings.TrimRight(asked.Prompt, "\n") + "\n\nA person answered:\n" + answer
		}
		return asked, nil
	}
	location, err := locationOf(d, t)
	if err != nil {
		return Decision{}, fmt.Errorf("resuming: %w", err)
	}
	return Decision{
		Kind: Run, Role: asked.Role, From: asked.From, Status: asked.Status, Edge: asked.Edge, Location: location,
		Prompt: "You asked a person:\n" + asked.Reason + "\n\nThe answer:\n" + answer,
	}, nil
}

// locationOf is where the last step's role worked: where the edge said that led to
// it, before it asked for the first time.
func locationOf(d *workflow.Definition, t Thread) (string, error) {
	for n := len(t.Steps) - 1; n >= 0; n-- {
		led, err := Next(d, Thread{t.Start, t.Steps[:n]})
		if err == nil && led.Kind == End && d.Resume != nil {
			led, err = Reopen(d, "")
		}
		if err != nil || led.Kind != Suspend {
			return led.Location, err
		}
	}
	return "", nil
}

// Reopen decides what a thread does that has ended and is to go on with a further
// text: it follows the workflow's `resume` edge. Where there is none, the error
// wraps ErrNoResumeEdge.
func Reopen(d *workflow.Definition, text string) (Decision, error) {
	if d.Resume == nil {
		return Decision{}, fmt.Errorf("reopening a thread of workflow %s: %w", d.Name, ErrNoResumeEdge)
	}
	// Like any edge of $START it has no output to fill its prompt with.
	out, err := followEdge(d, Output{Role: workflow.Start}, "", d.Resume)
	if err != nil {
		return Decision{}, fmt.Errorf("reopening: %w", err)
	}
	if strings.TrimSpace(text) != "" {
		out.Prompt = strings.TrimSpace(strings.TrimRight(out.Prompt, "\n") + "\n\nThe thread had ended. A person resumed it and says:\n" + text)
	}
	return out, nil
}

// chooseEdge picks the edge to take from a role; nil: there is none for the status.
func chooseEdge(d *workflow.Definition, t Thread, role, status string) (*workflow.Edge, error) {
	if d.Lists[role] {
		return firstMatch(d, t, role)
	}
	if e := edgeWhen(d, role, workflow.OnStatus, status); e != nil && status != "" {
		return e, nil
	}
	if status == "" || !d.Declares(role) {
		return edgeWhen(d, role, workflow.Always, ""), nil
	}
	return nil, nil
}

// firstMatch picks the first edge of a list whose condition holds.
func firstMatch(d *workflow.Definition, t Thread, role string) (*workflow.Edge, error) {
	var thread *condition.Thread
	var names []string
	for i := range d.Graph[role] {
		e := &d.Graph[role][i]
		if e.When.Kind != workflow.OnCondition {
			return e, nil
		}
		name := e.When.Value
		names = append(names, name)
		var err error
		if thread == nil {
			thread, err = threadOf(t)
		}
		holds := false
		if err == nil {
			holds, err = evalCondition(d.Conditions[name].Expression, thread)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("condition %q, on what follows %s, can't be decided: %w", name, role, err)
		case holds:
			return e, nil
		}
	}
	return nil, fmt.Errorf("no condition on what follows %s holds (%s), and there is no edge for all else", role, strings.Join(names, ", "))
}

func evalCondition(expression string, thread *condition.Thread) (bool, error) {
	c, err := condition.Compile(expression)
	if err != nil {
		return false, err
	}
	return c.Holds(thread)
}

func threadOf(t Thread) (*condition.Thread, error) {
	return condition.NewThread(t.Start, lists.Map(t.Steps, func(s Output) condition.Step {
		return condition.Step{Role: s.Role, Output: s.Output, Body: s.Body, Node: s.Node}
	}))
}

// edgeWhen is a role's edge for a status, or for all else; nil: there is none.
func edgeWhen(d *workflow.Definition, role string, kind workflow.Kind, status string) *workflow.Edge {
	i := slices.IndexFunc(d.Graph[role], func(e workflow.Edge) bool {
		return e.When.Kind == kind && (kind == workflow.Always || e.When.Value == status)
	})
	if i < 0 {
		return nil
	}
	return &d.Graph[role][i]
}

// followEdge takes an edge: it fills the templates in and says where that leads.
func followEdge(d *workflow.Definition, last Output, status string, e *workflow.Edge) (Decision, error) {
	if e == nil {
		return Decision{}, fmt.Errorf("deciding what follows %s of workflow %s: the graph has no edge for it", last.Role, d.Name)
	}
	name := last.Role + Arrow(Decision{Status: status, Edge: *e}.Result())
	data := dataOf(last)
	prompt, err := d.Fill(e.Prompt, data)
	if err != nil {
		return Decision{}, fmt.Errorf("the prompt of edge %s can't be filled in: %w", name, err)
	}
	location, err := d.Fill(e.Location, data)
	if err != nil {
		return Decision{}, fmt.Errorf("the location of edge %s can't be filled in: %w", name, err)
	}
	out := Decision{From: last.Role, Status: status, Edge: *e, Prompt: prompt}
	switch e.To {
	case workflow.End:
		out.Kind = End
		return out, nil
	case workflow.Suspend:
		out.Kind, out.Role, out.Reason = Suspend, last.Role, reasonOr(prompt, last)
		return out, nil
	}
	if _, ok := d.Roles[e.To]; !ok {
		return Decision{}, fmt.Errorf("following edge %s of workflow %s: %w", name, d.Name, ErrUnknownRole)
	}
	// The first role has the thread's own prompt; nothing could fill one of $START in.
	if strings.TrimSpace(prompt) == "" && strings.TrimSpace(e.Prompt) != "" && last.Role != workflow.Start {
		return Decision{}, fmt.Errorf("the prompt of edge %s is blank once it is filled in: the output lacks the fields that %q names", name, e.Prompt)
	}
	out.Kind, out.Role, out.Location = Run, e.To, strings.TrimSpace(location)
	return out, nil
}

// reasonOr is what a person is asked. Where that is blank, the role's report is, or the
// fields that it put out.
func reasonOr(s string, asking Output) string {
	fields := make([]string, 0, len(asking.Output))
	for name, v := range asking.Output {
		if text, ok := v.(string); ok && strings.TrimSpace(text) != "" && name != workflow.StatusField && name != workflow.LegacyStatusField {
			fields = append(fields, name+": "+strings.TrimSpace(text))
		}
	}
	slices.Sort(fields)
	for _, text := range []string{s, asking.Body, strings.Join(fields, "\n")} {
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return "the role gave no reason"
}

// dataOf is what a template of the edges after an output can name.
func dataOf(o Output) map[string]any {
	data := map[string]any{workflow.BodyVariable: o.Body}
	maps.Copy(data, o.Output)
	return data
}
