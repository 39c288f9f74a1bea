package table

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// Problem is one thing that is wrong, where it stands, and what to do.
type Problem struct {
	File      string // or the variable
	Line, Col int    // from 1; 0: unknown
	Path      string // of the setting: providers.openai.baseUrl
	Message   string
	Fix       string // empty: the message says it
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

// Lines are problems, each on a line.
func Lines(problems []Problem) string {
	return strings.Join(lists.Map(problems, Problem.String), "\n")
}
