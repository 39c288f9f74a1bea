package action

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/runner/ci"
)

const hidden = "s3cr3t-" + "value-0123456789"

func testLog(t *testing.T) (*jobLog, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	l := newJobLog(&out)
	red, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "token", Value: hidden}}})
	if err != nil {
		t.Fatal(err)
	}
	l.cleanBy(red)
	l.output, l.summary = filepath.Join(t.TempDir(), "output"), filepath.Join(t.TempDir(), "summary")
	return l, &out
}

// commands are the lines that a runner takes as commands, as it reads a log: none
// between ::stop-commands::WORD and ::WORD::.
func commands(log string) []string {
	var found []string
	stopped := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		switch {
		case stopped != "" && line == "::"+stopped+"::":
			stopped = ""
		case stopped != "":
		case strings.HasPrefix(line, "::stop-commands::"):
			stopped = strings.TrimPrefix(line, "::stop-commands::")
		case strings.HasPrefix(line, "::"), strings.Contains(line, "##["):
			found = append(found, line)
		}
	}
	return found
}

// What agents and strangers write is never a command.
func TestFence(t *testing.T) {
	l, out := testLog(t)
	agent := l.agentWriter()
	evil := "::set-env name=PATH::/evil\n::stop-commands::x\n::x::\n##[add-mask]a\n::error::gotcha"
	fmt.Fprint(agent, evil)
	l.writeLine("%s", evil)
	fmt.Fprint(agent, evil+"\n")
	l.Notice(evil)
	l.Error(ci.Annotation{Title: evil, File: "a\n::error::b", Line: 3, Message: evil})
	fmt.Fprint(agent, "the end")
	l.closeAll()
	for _, c := range commands(out.String()) {
		if !regexp.MustCompile(`^::(notice|error|group|endgroup)( [^:]*)?::`).MatchString(c) {
			t.Errorf("a command that is not ours: %s", c)
		}
		if strings.Contains(c, "##[") {
			t.Errorf("a command in a command: %s", c)
		}
	}
	if n := strings.Count(out.String(), "::stop-commands::uwf-"); n != 3 {
		t.Errorf("%d fences, want one for each time that the agent was heard:\n%s", n, out)
	}
	words := regexp.MustCompile(`stop-commands::(uwf-[A-Z2-7]{26})`).FindAllStringSubmatch(out.String(), -1)
	if words[0][1] == words[1][1] {
		t.Error("two fences with the same word: who read the first could end the second")
	}
	for _, w := range words {
		if strings.Count(out.String(), "\n::"+w[1]+"::\n") != 1 {
			t.Errorf("the fence %s does not end on a line of its own", w[1])
		}
	}
}

func TestMask(t *testing.T) {
	l, out := testLog(t)
	l.maskSecrets(hidden)
	if out.Len() > 0 {
		t.Errorf("a secret is told where nobody hides it: %s", out)
	}
	l.masks = true
	l.maskSecrets(hidden, hidden, "", "abc", "first line\r\nsecond line\n")
	if want := "::add-mask::" + hidden + "\n::add-mask::first line\n::add-mask::second line\n"; out.String() != want {
		t.Errorf("%q", out)
	}
}

func TestMessagesHoldNoSecrets(t *testing.T) {
	l, out := testLog(t)
	l.writeLine("it is %s", hidden)
	l.Notice(hidden)
	l.Warning(hidden)
	l.Error(ci.Annotation{Title: hidden, File: hidden, Message: hidden})
	l.Summary(hidden)
	b, err := os.ReadFile(l.summary)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String()+string(b), hidden) {
		t.Errorf("%s\n%s", out, b)
	}
	l.cleanBy(nil)
	l.writeLine("%s", hidden)
	if strings.Contains(out.String(), hidden) {
		t.Error("without a redactor everything is said")
	}
}

func TestAnnotations(t *testing.T) {
	l, out := testLog(t)
	for i := range 15 {
		l.Warning(fmt.Sprint("w", i))
		l.Error(ci.Annotation{File: "a,b.yaml", Line: 2, Col: 3, Title: "t", Message: fmt.Sprint("100%\ne", i)})
	}
	if n := len(commands(out.String())); n != 20 {
		t.Errorf("%d annotations", n)
	}
	if !strings.Contains(out.String(), "::error col=3,file=a%2Cb.yaml,line=2,title=t::100%25%0Ae0\n") || !strings.Contains(out.String(), "warning: w14\n") {
		t.Errorf("%s", out)
	}
}

func TestSummaryLimit(t *testing.T) {
	l, out := testLog(t)
	l.Summary("first")
	l.Summary(strings.Repeat("ä", 1<<20))
	b, err := os.ReadFile(l.summary)
	if err != nil || len(b) > maxSummary || len(b) < maxSummary-100 || strings.Contains(string(b), "first") || !strings.HasSuffix(string(b), "ä…") || strings.Contains(string(b), "\ufffd") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	l.summary = filepath.Join(t.TempDir(), "no", "folder")
	l.Summary("x")
	if !strings.Contains(out.String(), "could not be written") {
		t.Errorf("%s", out)
	}
}

// parseOutputs reads a GITHUB_OUTPUT file as the runner does.
func parseOutputs(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines) && lines[i] != ""; i++ {
		name, end, ok := strings.Cut(lines[i], "<<")
		if !ok {
			t.Fatalf("line %q of\n%s", lines[i], text)
		}
		var value []string
		for i++; lines[i] != end; i++ {
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

func TestOutputs(t *testing.T) {
	l, out := testLog(t)
	if err := os.WriteFile(l.output, []byte("before<<x\n1\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.writeOutputs(ci.Outcome{Thread: "01JY0000000000000000000000", Role: hidden, Result: "a\nthread<<evil\nb\nevil", Step: 2, PullRequest: 7})
	b, err := os.ReadFile(l.output)
	if err != nil {
		t.Fatal(err)
	}
	got := parseOutputs(t, string(b))
	want := map[string]string{"before": "1", "thread": "01JY0000000000000000000000", "head": "", "status": "", "result": "a\nthread<<evil\nb\nevil", "role": "",
		"next-role": "", "step": "2", "done": "false", "pull-request": "7"}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %q, want %q", name, got[name], v)
		}
	}
	if len(got) != len(want) || !strings.Contains(out.String(), "the output role holds a secret") {
		t.Errorf("%v\n%s", got, out)
	}
	ends := regexp.MustCompile(`<<(uwf_[A-Z2-7]{26})\n`).FindAllStringSubmatch(string(b), -1)
	if len(ends) != 9 || ends[0][1] == ends[1][1] {
		t.Errorf("delimiters: %v", ends)
	}
}
