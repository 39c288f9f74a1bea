package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// Part is where in a file something was found.
type Part string

// The parts.
const (
	Name    Part = "name"
	Content Part = "content"
	Target  Part = "target" // of a symlink
	Whole   Part = "file"   // it is too large
)

// Finding is one thing that must not be committed. It never holds the secret.
type Finding struct {
	Path   string
	Part   Part
	Line   int    // of the content, from 1
	Secret string // the name of the secret or of the token's shape; empty for a Whole file
	Known  bool   // a secret that uwf knows; else the shape of a token
	Sum    string // of a token, as an entry of redact.allow
	// Pattern: the shape is a pattern of the settings. Its texts may be short, so that
	// the Sum tells what they are.
	Pattern bool
	Size    int64 // bytes of a Whole file
}

func (f Finding) isToken() bool { return f.Part != Whole && !f.Known }

// String says what the agent did, without the secret.
func (f Finding) String() string { return "the agent wrote " + f.describe(" into ") }

// Describe says what was found where, without the secret.
func (f Finding) Describe() string { return f.describe(" in ") }

func (f Finding) describe(in string) string {
	what := fmt.Sprintf("a secret (%s)", f.Secret)
	if !f.Known {
		what = fmt.Sprintf("what looks like a token (%s)", f.Secret)
	}
	switch f.Part {
	case Name:
		return what + in + "the name of " + f.Path
	case Target:
		return what + in + "the target of the link " + f.Path
	case Whole:
		return fmt.Sprintf("%s, a binary file of %d bytes, and none of more than %d is searched for secrets", f.Path, f.Size, MaxBinary)
	}
	return fmt.Sprintf("%s%s%s:%d", what, in, f.Path, f.Line)
}

// allowEntry is the entry of redact.allow that lets it through; empty: nothing does.
func (f Finding) allowEntry() string {
	switch {
	case f.Known:
		return ""
	case f.Part == Whole || f.Pattern || f.Sum == "":
		return "path:/" + escapePattern(f.Path)
	}
	return f.Sum
}

// escapePattern is a pattern of .gitignore that means one path.
func escapePattern(path string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
	if rest, ok := strings.CutSuffix(escaped, " "); ok {
		escaped = rest + `\ `
	}
	return escaped
}

// FoundError: what an agent changed holds what must not be committed. Nothing that was
// found was pushed.
type FoundError struct{ Findings []Finding }

// Known says whether a secret that uwf knows was found.
func (e *FoundError) Known() bool {
	return slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Known })
}

// Paths are the files in which something was found.
func (e *FoundError) Paths() []string {
	out := lists.Map(e.Findings, func(f Finding) string { return f.Path })
	slices.Sort(out)
	return slices.Compact(out)
}

// maxListed bounds the findings that a message lists.
const maxListed = 20

// Error lists what was found, says what to do, and gives the lines of the settings that
// allow what is no secret.
func (e *FoundError) Error() string {
	var b strings.Builder
	var entries []string
	for i, f := range e.Findings {
		if entry := f.allowEntry(); entry != "" && len(entries) < maxListed && !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
		switch {
		case i < maxListed:
			fmt.Fprintf(&b, "%s\n", f)
		case i == maxListed:
			fmt.Fprintf(&b, "and %d more\n", len(e.Findings)-maxListed)
		}
	}
	if e.Known() {
		b.WriteString("nothing of the folder was pushed: take the secret out of the agent's reach, or out of the file, and run the step again")
	} else {
		b.WriteString("no such file was pushed: tell the agent to leave it out, and run the step again")
	}
	if len(entries) > 0 {
		b.WriteString("\nwhat is no secret can be named in .uwf/config.yaml (in CI that of the default branch; not one that agents can write) or ~/.uwf/config.yaml:\nredact:\n  allow:")
		for _, entry := range entries {
			fmt.Fprintf(&b, "\n    - %q", entry)
		}
	}
	return b.String()
}
