// Package paths tries the paths of a workflow: what each role answers, in what order, what each
// is told, and where it ends. It makes paths that meet every status of every role. Nothing is
// run, and nothing is stored.
package paths

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Case is one path.
type Case struct {
	Name  string
	Steps []Step
	Ends  string // $END or $SUSPEND
	Says  string // the last edge's words; empty: they are not compared
	Line  int
}

// Step is one answer on a path.
type Step struct {
	Role   string
	Prompt string // what the edge tells the role; empty: it is not compared
	Output string // the whole answer, as an agent gives it
	Line   int
}

// Failure is what was otherwise than a case says.
type Failure struct {
	Case    string
	Line    int // of the case's file
	Message string
	Fix     string
}

// maxCases bounds the cases of a file, and maxSteps the steps of one.
const (
	maxCases = 1000
	maxSteps = 200
)

// Parse reads cases. Name is used in the error, which is a *table.Problem list as text.
func Parse(name string, data []byte) ([]Case, error) {
	r := &table.Reader{File: name}
	var out []Case
	r.Read(data, caseSettings(&out))
	if len(r.Problems) == 0 && (len(out) == 0 || len(out) > maxCases) {
		r.Problems = append(r.Problems, table.Problem{File: name, Line: 1, Col: 1, Message: fmt.Sprintf("%d cases", len(out)), Fix: fmt.Sprintf("write 1 to %d into the list \"cases\"", maxCases)})
	}
	if len(r.Problems) > 0 {
		return nil, fmt.Errorf("read the paths: %s", table.Lines(r.Problems))
	}
	return out, nil
}

// caseSettings are what may stand in a file of cases. Each case that is read is added to into.
func caseSettings(into *[]Case) table.Setting {
	field := func(name string, s table.Setting) table.Field { return table.Field{Name: name, Setting: s} }
	stepOf := func(c *Case) func(line int) table.Setting {
		return func(line int) table.Setting {
			s := Step{Line: line}
			return table.Object("One answer.",
				field("role", table.Text("The role whose turn it is.", &s.Role)),
				field("prompt", table.Text("What it is told. Left out, it is not compared.", &s.Prompt)),
				field("output", table.Text("What it answers: markdown below a frontmatter.", &s.Output)),
			).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
				if s.Role == "" || s.Output == "" {
					r.NoteProblem(n, path, "", "a step needs a role and an output")
				}
				c.Steps = append(c.Steps, s)
			})
		}
	}
	cases := table.Items("The paths, each from the workflow's start.", func(line int) table.Setting {
		c := Case{Line: line}
		return table.Object("One path.",
			field("name", table.Text("What it is called where it is otherwise.", &c.Name)),
			field("steps", table.Items("What the roles answer, in this order.", stepOf(&c))),
			field("ends", table.Text("Where it ends.", &c.Ends, workflow.End, workflow.Suspend)),
			field("says", table.Text("The last edge's words. Left out, they are not compared.", &c.Says)),
		).Then(func(r *table.Reader, n *strictyaml.Node, path string) {
			if c.Ends == "" {
				r.NoteProblem(n, path, "write ends: "+workflow.End, "a case says where it ends")
			}
			*into = append(*into, c)
		})
	})
	return table.Object("Paths through a workflow, for uwf workflow test.", field("cases", cases)).
		Requiring(func(schema map[string]any) { schema["type"], schema["required"] = "object", []any{"cases"} })
}

// SchemaID names the JSON Schema of files of cases.
const SchemaID = "https://raw.githubusercontent.com/united-workforce/uwf/main/examples/paths.schema.json"

// Schema is the JSON Schema (draft 7, which editors know) of a file of cases, made of the table
// that it is read with.
func Schema() map[string]any {
	return caseSettings(&[]Case{}).Document(SchemaID, "uwf workflow paths")
}

// Try plays a case, and says what was otherwise: at most one thing, for all else follows from it.
func Try(d *workflow.Definition, c Case) *Failure {
	fail := func(line int, fix, format string, args ...any) *Failure {
		return &Failure{Case: c.Name, Line: line, Message: fmt.Sprintf(format, args...), Fix: fix}
	}
	thread := moderator.Thread{Start: map[string]any{}}
	for i := 0; ; i++ {
		next, err := moderator.Next(d, thread)
		if err != nil {
			return fail(lineOf(c, i-1), "", "%v", err)
		}
		if next.Kind != moderator.Run {
			return c.checkEnd(next, i, fail)
		}
		if i == len(c.Steps) {
			return fail(c.Line, "add its answer", "after %d steps it is the turn of %s, and the case has no more", i, next.Role)
		}
		s := c.Steps[i]
		if s.Role != next.Role {
			return fail(s.Line, "", "step %d is of %s, and it is the turn of %s", i+1, s.Role, next.Role)
		}
		if s.Prompt != "" && strings.TrimSpace(s.Prompt) != strings.TrimSpace(next.Prompt) {
			return fail(s.Line, "", "step %d: %s is told\n%s\nand not\n%s", i+1, s.Role, indentText(next.Prompt), indentText(s.Prompt))
		}
		out, err := readAnswer(d, s)
		if err != nil {
			return fail(s.Line, "", "step %d, %s: %v", i+1, s.Role, err)
		}
		thread.Steps = append(thread.Steps, out)
	}
}

// readAnswer reads an answer as a step does.
func readAnswer(d *workflow.Definition, s Step) (moderator.Output, error) {
	if d.AgentSuspends {
		if r, asks, err := extract.Suspension(s.Output); asks {
			return moderator.Output{Role: s.Role, Output: r.Output, Body: r.Body}, err
		}
	}
	r, err := extract.Frontmatter(s.Output, d.Roles[s.Role].Schema)
	return moderator.Output{Role: s.Role, Output: r.Output, Body: r.Body}, err
}

func (c Case) checkEnd(next moderator.Decision, steps int, fail func(int, string, string, ...any) *Failure) *Failure {
	ends, says := workflow.End, next.Prompt
	if next.Kind == moderator.Suspend {
		ends, says = workflow.Suspend, next.Reason
	}
	switch {
	case steps < len(c.Steps):
		return fail(c.Steps[steps].Line, "", "the thread is at %s after %d steps, and the case goes on with %s", ends, steps, c.Steps[steps].Role)
	case ends != c.Ends:
		return fail(c.Line, "", "it ends at %s, and not at %s", ends, c.Ends)
	case c.Says != "" && strings.TrimSpace(c.Says) != strings.TrimSpace(says):
		return fail(c.Line, "", "it ends with the words\n%s\nand not\n%s", indentText(says), indentText(c.Says))
	}
	return nil
}

func lineOf(c Case, step int) int {
	if step >= 0 && step < len(c.Steps) {
		return c.Steps[step].Line
	}
	return c.Line
}

func indentText(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}

// Untried are the edges that no case takes, by their names.
func Untried(d *workflow.Definition, cases []Case) []string {
	tried := map[string]bool{}
	for _, c := range cases {
		thread := moderator.Thread{Start: map[string]any{}}
		for _, s := range c.Steps {
			out, err := readAnswer(d, s)
			if err != nil {
				break
			}
			thread.Steps = append(thread.Steps, out)
			if next, err := moderator.Next(d, thread); err == nil {
				tried[edgeName(s.Role, next.Edge)] = true
			}
		}
	}
	var left []string
	for _, role := range d.RoleNames() {
		for _, e := range d.Graph[role] {
			if name := edgeName(role, e); !tried[name] {
				left = append(left, name)
			}
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}
