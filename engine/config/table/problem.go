package table

import (
	"fmt"
	"strings"
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
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
