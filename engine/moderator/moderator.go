package moderator

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/condition"
	"github.com/united-workforce/uwf/engine/workflow/liquid"
	"github.com/united-workforce/uwf/engine/workflow/template"
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
func (k Kind) String() string {
	switch k {
	case Run:
		return "run"
	case End:
		return "end"
	case Suspend:
		return "suspend"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

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

// StatusError is an output whose status no edge of its role waits for. Status is
// empty where the output has none.
type StatusError struct {
	Role    string
	Key     string // the field that holds the status
	Status  string
	Allowed []string // what there are edges for
}

func (e *StatusError) Error() string {
	allowed := "no status"
	if len(e.Allowed) > 0 {
		allowed = "one of " + strings.Join(e.Allowed, ", ")
	}
	if e.Status == "" {
		return fmt.Sprintf("the output of role %s has no %s; the workflow waits for %s", e.Role, e.Key, allowed)
	}
	return fmt.Sprintf("the output of role %s has %s %q, which leads nowhere; the workflow waits for %s", e.Role, e.Key, e.Status, allowed)
}

// ConditionError is a condition that can't be decided. It never counts as false.
type ConditionError struct {
	Role string // whose output it would judge; $START before the first step
	Name string
	Err  error
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("condition %q, on what follows %s, can't be decided: %v", e.Name, e.Role, e.Err)
}

func (e *ConditionError) Unwrap() error { return e.Err }

// NoMatchError is an output that no condition of its role's edges holds for.
type NoMatchError struct {
	Role       string
	Conditions []string // in their order
}

func (e *NoMatchError) Error() string {
	return fmt.Sprintf("no condition on what follows %s holds (%s), and there is no edge for all else", e.Role, strings.Join(e.Conditions, ", "))
}

// PromptError is an edge whose prompt can't be filled in from the output, or
// comes out blank, so that the next role would not know what to do.
type PromptError struct {
	Role, Status, To string
	Template         string
	Err              error // nil: it came out blank
}

func (e *PromptError) Error() string {
	edge := fmt.Sprintf("the prompt of edge %s → %s (to %s)", e.Role, orUnit(e.Status), e.To)
	if e.Err != nil {
		return fmt.Sprintf("%s can't be filled in: %v", edge, e.Err)
	}
	return fmt.Sprintf("%s is blank once it is filled in: the output lacks the fields that %q names", edge, e.Template)
}

func (e *PromptError) Unwrap() error { return e.Err }

func orUnit(status string) string {
	if status == "" {
		return workflow.Unit
	}
	return status
}

// Next decides what a thread does after its steps. An output that leads nowhere is
// a *StatusError or *NoMatchError, one that a condition fails over a
// *ConditionError, one that leaves the next role without a prompt a *PromptError:
// asked before an output is committed, Next thus keeps threads from getting stuck.
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
	if err != nil {
		return Decision{}, err
	}
	if edge == nil {
		return Decision{}, &StatusError{Role: last.Role, Key: d.StatusKeyOf(last.Role), Status: status, Allowed: AllowedStatuses(d, last.Role)}
	}
	return followEdge(d, last, status, edge)
}

// asksForPerson reports an output that suspends its thread by itself, whatever
// field the role's own schema has for statuses.
func asksForPerson(o Output) bool {
	return o.Output[workflow.StatusField] == workflow.Suspend || o.Output[workflow.LegacyStatusField] == workflow.Suspend
}

// StatusOf is the status of an output; empty where it has none, or says so by "_".
func StatusOf(d *workflow.Definition, o Output) string {
	if d.AgentSuspends && asksForPerson(o) {
		return workflow.Suspend
	}
	keys := []string{d.StatusKeyOf(o.Role)}
	if !d.Declares(o.Role) {
		// Nothing says where this role's status is: take the first there is.
		keys = []string{workflow.StatusField, workflow.LegacyStatusField}
	}
	for _, key := range keys {
		if s, ok := o.Output[key].(string); ok && s != "" && s != workflow.Unit {
			return s
		}
	}
	return ""
}

// AllowedStatuses lists the statuses that role's edges wait for, in the order of
// its schema. None: the role needs no status.
func AllowedStatuses(d *workflow.Definition, role string) []string { return d.Statuses(role) }

// SuspendStatuses lists those of AllowedStatuses that hand the thread to a person.
func SuspendStatuses(d *workflow.Definition, role string) []string {
	var out []string
	for _, s := range AllowedStatuses(d, role) {
		if e := onStatus(d, role, s); e != nil && e.To == workflow.Suspend {
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
			led, err = Reopen(d, t, "")
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
func Reopen(d *workflow.Definition, _ Thread, text string) (Decision, error) {
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
	if e := onStatus(d, role, status); e != nil {
		return e, nil
	}
	if status == "" || !d.Declares(role) {
		return edgeAlways(d, role), nil
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
		if thread == nil {
			var err error
			if thread, err = threadOf(t); err != nil {
				return nil, &ConditionError{Role: role, Name: name, Err: err}
			}
		}
		holds, err := evalCondition(d.Conditions[name].Expression, thread)
		if err != nil {
			return nil, &ConditionError{Role: role, Name: name, Err: err}
		}
		if holds {
			return e, nil
		}
	}
	return nil, &NoMatchError{Role: role, Conditions: names}
}

func evalCondition(expression string, thread *condition.Thread) (bool, error) {
	c, err := condition.Compile(expression)
	if err != nil {
		return false, err
	}
	return c.Holds(thread)
}

func threadOf(t Thread) (*condition.Thread, error) {
	steps := make([]condition.Step, len(t.Steps))
	for i, s := range t.Steps {
		steps[i] = condition.Step{Role: s.Role, Output: s.Output, Body: s.Body, Node: s.Node}
	}
	return condition.NewThread(t.Start, steps)
}

// onStatus is the edge for a status; nil: there is none.
func onStatus(d *workflow.Definition, role, status string) *workflow.Edge {
	for i := range d.Graph[role] {
		e := &d.Graph[role][i]
		if e.When.Kind == workflow.OnStatus && status != "" && e.When.Value == status {
			return e
		}
	}
	return nil
}

func edgeAlways(d *workflow.Definition, from string) *workflow.Edge {
	for i := range d.Graph[from] {
		if e := &d.Graph[from][i]; e.When.Kind == workflow.Always {
			return e
		}
	}
	return nil
}

// followEdge takes an edge: it fills the templates in and says where that leads.
func followEdge(d *workflow.Definition, last Output, status string, e *workflow.Edge) (Decision, error) {
	if e == nil {
		return Decision{}, fmt.Errorf("deciding what follows %s of workflow %s: the graph has no edge for it", last.Role, d.Name)
	}
	fail := func(tmpl string, err error) (Decision, error) {
		return Decision{}, &PromptError{Role: last.Role, Status: status, To: e.To, Template: tmpl, Err: err}
	}
	data := dataOf(last)
	render := newRenderer(d)
	prompt, err := render(e.Prompt, data)
	if err != nil {
		return fail(e.Prompt, err)
	}
	location, err := render(e.Location, data)
	if err != nil {
		return fail(e.Location, fmt.Errorf("its location: %w", err))
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
		return Decision{}, fmt.Errorf("following edge %s → %s of workflow %s to %q: %w", last.Role, orUnit(status), d.Name, e.To, ErrUnknownRole)
	}
	// The first role has the thread's own prompt; nothing could fill one of $START in.
	if strings.TrimSpace(prompt) == "" && strings.TrimSpace(e.Prompt) != "" && last.Role != workflow.Start {
		return fail(e.Prompt, nil)
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
	data := make(map[string]any, len(o.Output)+1)
	for k, v := range o.Output {
		data[k] = v
	}
	if _, taken := data[workflow.BodyVariable]; !taken {
		data[workflow.BodyVariable] = o.Body
	}
	return data
}

// newRenderer fills the templates of the definition's language in.
func newRenderer(d *workflow.Definition) func(text string, data map[string]any) (string, error) {
	if d.Dialect == workflow.Liquid {
		return renderLiquid
	}
	return renderMustache
}

func renderMustache(text string, data map[string]any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.Parse(text)
	if err != nil {
		return "", err
	}
	return t.Render(data)
}

func renderLiquid(text string, data map[string]any) (string, error) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "{%") {
		return text, nil
	}
	t, err := liquid.Parse(text)
	if err != nil {
		return "", err
	}
	return t.Render(data)
}
