// Package annotation speaks to the log of a forge's workflow run: it shows problems
// beside the lines of files, and keeps text from files from being taken for
// commands.
package annotation

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
)

// Job is the run of a forge's workflow that this process is part of. Its log is
// read for commands, which is how a line of a file gets an annotation, and why text
// from files must not look like one.
type Job struct {
	out io.Writer // stderr: stdout is for results
	dir string    // the working directory
	top string    // what paths of annotations are relative to
}

// What annotations are shown as.
const (
	Error   = "error"
	Warning = "warning"
)

// Of is nil outside of a job.
func Of(f *app.Factory) *Job {
	if f.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	return &Job{out: f.IO.Err, dir: f.Dir, top: cmp.Or(f.Getenv("GITHUB_WORKSPACE"), f.RepoRoot())}
}

// Invalid annotates what is wrong with a definition.
func (j *Job) Invalid(e *workflow.InvalidError) {
	for _, p := range e.Problems {
		j.Write(Error, p)
	}
}

// Warn annotates what a definition says to no effect.
func (j *Job) Warn(p workflow.Problem) { j.Write(Warning, p) }

// Write writes the command that shows a problem beside its line.
func (j *Job) Write(level string, p workflow.Problem) {
	place, message := "", p.Message
	if p.Line > 0 {
		place = fmt.Sprintf("file=%s,line=%d,col=%d,endColumn=%d,", escapeProperty(j.annotatedPath(p.File)), p.Line, p.Col, p.Col+p.Len)
	} else {
		message = p.File + ": " + message // it is perhaps no file of the repository
	}
	if p.Fix != "" {
		message += "\n" + p.Fix
	}
	_, _ = fmt.Fprintf(j.out, "::%s %stitle=uwf workflow::%s\n", level, place, commandText(message))
}

// annotatedPath is a file as annotations name it: relative to the repository's top.
func (j *Job) annotatedPath(file string) string {
	full := filepath.FromSlash(file)
	if !filepath.IsAbs(full) {
		full = filepath.Join(j.dir, full)
	}
	if rel, err := filepath.Rel(j.top, full); err == nil && j.top != "" && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}

// commandText escapes the text of a command. Characters that a terminal acts on are shown
// as output.Clean shows them.
func commandText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", "##[", "## [").Replace(output.Clean(s))
}

// escapeProperty escapes the value of a command's property.
func escapeProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandText(output.Line(s, 500)))
}

// Inert makes text that is shown in a job's log ineffective: what begins a command
// (:: at the beginning of a line, ##[ anywhere) is taken apart.
func Inert(s string) string {
	s = strings.ReplaceAll(s, "##[", "## [")
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "::") {
			lines[i] = "| " + l
		}
	}
	return strings.Join(lines, "")
}

// InertJSON does the same for JSON, whose lines never begin with ::.
type InertJSON struct{ Out io.Writer }

// Write implements io.Writer. encoding/json writes whole values at once.
func (w InertJSON) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Out, strings.ReplaceAll(string(p), "##[", `##\u005b`)); err != nil {
		return 0, err
	}
	return len(p), nil
}
