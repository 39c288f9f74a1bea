package action

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/sethvargo/go-githubactions"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/annotation"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	// maxAnnotations is how many of a kind the forge shows of one step.
	maxAnnotations = 10
	// maxSummary is what the forge takes as a summary, in bytes.
	maxSummary = 1 << 20
	// maxMessage bounds one line of the log.
	maxMessage = 4 << 10
	// minMask is the shortest secret that is masked: a shorter one would take letters
	// out of every line.
	minMask = 4
)

// jobLog is the job's log and the files through which a job tells the forge more. The
// log is read for commands, so nothing that an agent or a stranger wrote goes into it
// but behind a fence, or with what begins a command taken apart.
type jobLog struct {
	clean           func(string) string // takes secrets out
	masks           bool                // the runner takes masks
	output, summary string              // the files; empty: there are none

	mu    sync.Mutex
	out   io.Writer
	gh    *githubactions.Action
	fence string // ends the running ::stop-commands::; empty: there is none
	ended bool   // the last line is complete
	shown map[string]int
	// masked are the secrets that the runner knows; only the job's own goroutine adds.
	masked map[string]bool
}

var _ ci.Output = (*jobLog)(nil)

func newJobLog(out io.Writer) *jobLog {
	w := neverFailing{out}
	return &jobLog{
		out: w, gh: githubactions.New(githubactions.WithWriter(w)), ended: true, shown: map[string]int{}, masked: map[string]bool{},
		clean: func(s string) string { return s },
	}
}

// neverFailing is a writer that never fails: a log that nobody takes must not end a step.
type neverFailing struct{ io.Writer }

func (d neverFailing) Write(p []byte) (int, error) {
	_, _ = d.Writer.Write(p)
	return len(p), nil
}

// cleanBy takes a redactor over. Without one that works nothing is said.
func (l *jobLog) cleanBy(r *redact.Redactor) {
	l.clean = func(s string) string {
		if r == nil {
			return "(left out: it could not be searched for secrets)"
		}
		out, _ := r.String(s)
		return out
	}
}

// maskSecrets has the forge's runner hide a secret wherever it is logged: line by line, as it
// compares lines.
func (l *jobLog) maskSecrets(secrets ...string) {
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			line = strings.TrimSpace(line)
			if len(line) < minMask || !l.masks || l.masked[line] {
				continue
			}
			l.masked[line] = true
			l.writeCommand(func() { l.gh.AddMask(line) })
		}
	}
}

// encodeBasicAuth writes a token as git sends it to its forge.
func encodeBasicAuth(token string) string {
	return base64.StdEncoding.EncodeToString([]byte(tokenUser + ":" + token))
}

// writeCommand writes what the runner is to take as a command: outside of a fence.
func (l *jobLog) writeCommand(write func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endFence()
	write()
}

// endFence ends a fence. The lock is held.
func (l *jobLog) endFence() {
	if l.fence == "" {
		return
	}
	if !l.ended {
		fmt.Fprintln(l.out)
	}
	fmt.Fprintf(l.out, "::%s::\n", l.fence)
	l.fence, l.ended = "", true
	l.gh.EndGroup()
}

// closeAll ends what is still open.
func (l *jobLog) closeAll() { l.writeCommand(func() {}) }

// agentWriter is where what agents print goes: in a group, behind a fence that only who
// knows its word can end.
func (l *jobLog) agentWriter() io.Writer { return fenced{l} }

type fenced struct{ l *jobLog }

func (f fenced) Write(p []byte) (int, error) {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if l.fence == "" {
		l.fence = "uwf-" + rand.Text()
		l.gh.Group("what the agent prints")
		fmt.Fprintf(l.out, "::stop-commands::%s\n", l.fence)
	}
	_, _ = l.out.Write(p)
	l.ended = bytes.HasSuffix(p, []byte("\n"))
	return len(p), nil
}

// writeLine says something that is worth no annotation.
func (l *jobLog) writeLine(format string, args ...any) {
	line := annotation.Inert(output.Clean(l.cleanText(fmt.Sprintf(format, args...))))
	l.writeCommand(func() { fmt.Fprintln(l.out, line) })
}

// cleanText is a message without secrets, and not too long.
func (l *jobLog) cleanText(msg string) string {
	return text.Cut(strings.TrimSpace(l.clean(msg)), maxMessage)
}

// annotateJob shows a message beside the job, where there is still room for it.
func (l *jobLog) annotateJob(kind, msg string, fields githubactions.CommandProperties) {
	msg = output.Clean(l.cleanText(msg))
	l.mu.Lock()
	l.shown[kind]++
	full := l.shown[kind] > maxAnnotations
	l.mu.Unlock()
	if full {
		l.writeLine("%s: %s", kind, msg)
		return
	}
	// The runner still reads ##[ anywhere in a line as a command.
	msg = strings.ReplaceAll(msg, "##[", "## [")
	l.writeCommand(func() { l.gh.IssueCommand(&githubactions.Command{Name: kind, Message: msg, Properties: fields}) })
}

// Notice implements ci.Output.
func (l *jobLog) Notice(msg string) { l.annotateJob("notice", msg, nil) }

// Warning implements ci.Output.
func (l *jobLog) Warning(msg string) { l.annotateJob("warning", msg, nil) }

// Error implements ci.Output.
func (l *jobLog) Error(a ci.Annotation) {
	fields := githubactions.CommandProperties{}
	set := func(name, value string) {
		if value = output.Line(l.clean(value), 500); value != "" {
			fields[name] = strings.ReplaceAll(value, "##[", "## [")
		}
	}
	set("title", a.Title)
	set("file", a.File)
	if a.File != "" && a.Line > 0 {
		fields["line"] = strconv.Itoa(a.Line)
		if a.Col > 0 {
			fields["col"] = strconv.Itoa(a.Col)
		}
	}
	l.annotateJob("error", a.Message, fields)
}

// Summary implements ci.Output. Where the job has no file for it, it is left out.
func (l *jobLog) Summary(markdown string) {
	if l.summary == "" {
		return
	}
	if err := os.WriteFile(l.summary, []byte(text.Cut(l.clean(markdown), maxSummary)), 0o600); err != nil {
		l.writeLine("the summary could not be written: %v", err)
	}
}

// writeOutputs writes the action's outputs. A value that holds a secret is left out: the
// forge would drop it without a word, or hand it to the next step.
func (l *jobLog) writeOutputs(o ci.Outcome) {
	var b strings.Builder
	for _, out := range OutputsOf(o) {
		name, v := out[0], out[1]
		if l.clean(v) != v {
			l.Warning("the output " + name + " holds a secret and is left empty")
			v = ""
		}
		b.WriteString(formatOutput(name, v))
	}
	if l.output == "" {
		return
	}
	f, err := os.OpenFile(l.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(b.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.Warning(fmt.Sprintf("the outputs could not be written: %v", err))
	}
}

// formatOutput is an output as the forge reads it: between two lines that nobody guesses.
func formatOutput(name, value string) string {
	end := "uwf_" + rand.Text()
	return name + "<<" + end + "\n" + value + "\n" + end + "\n"
}

// OutputsOf are the action's outputs in the order of action.yml, each by its name and value.
func OutputsOf(o ci.Outcome) [][2]string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return [][2]string{
		{"thread", string(o.Thread)}, {"head", string(o.Head)}, {"status", o.Status}, {"result", o.Result}, {"role", o.Role},
		{"next-role", o.NextRole}, {"step", number(o.Step)}, {"done", strconv.FormatBool(o.Done)}, {"pull-request", number(o.PullRequest)},
	}
}
