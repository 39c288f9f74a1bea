package workflow

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/internal/lists"
)

// Problem is one mistake in a definition, with its place and a fix.
type Problem = source.Problem

// InvalidError is a definition that can't be used, with everything that is wrong
// with it, in the order of the file.
type InvalidError struct {
	Name     string // of the definition's file
	Problems []Problem
}

func (e *InvalidError) Error() string {
	lines := lists.Map(e.Problems, func(p Problem) string { return "\n  " + p.String() })
	return e.summarizeProblems() + strings.Join(lines, "")
}

// Text is all problems for a terminal, see Problem.Text, and how many there are.
func (e *InvalidError) Text() string { return e.listProblems() + e.summarizeProblems() + "\n" }

// Report is like Text, but begins with how many there are.
func (e *InvalidError) Report() string { return e.summarizeProblems() + "\n\n" + e.listProblems() }

func (e *InvalidError) listProblems() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString(p.Text())
		b.WriteByte('\n')
	}
	return b.String()
}

func (e *InvalidError) summarizeProblems() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("workflow definition %s is invalid: 1 problem", e.Name)
	}
	if len(e.Problems) >= source.MaxProblems {
		return fmt.Sprintf("workflow definition %s is invalid: the first %d problems", e.Name, len(e.Problems))
	}
	return fmt.Sprintf("workflow definition %s is invalid: %d problems", e.Name, len(e.Problems))
}
