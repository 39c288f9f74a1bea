package servers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// secret is what the threads are about, and what a purge takes out.
const secret = "hunter2-of-the-table"

const flow = `name: flow
description: A developer and a reviewer.
roles:
  dev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {enum: [done]}}, required: [$status]}
  rev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {enum: [ok, ask, again]}, note: {type: string}}, required: [$status, note]}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: rev, prompt: look}}
  rev:
    ok: {role: $END, prompt: over}
    again: {role: dev, prompt: again}
    ask: {role: $SUSPEND, prompt: "{{note}}"}
`

// script: the reviewer asks, sends the developer back, and is content.
const script = `steps:
  - role: dev
    visit: 1
    write: {made.txt: "by the agent\n"}
    output: "---\n$status: done\n---\n"
  - role: dev
    write: {made-again.txt: "by the agent\n"}
    output: "---\n$status: done\n---\n"
  - role: rev
    visit: 1
    output: "---\n$status: ask\nnote: this or that?\n---\n"
  - role: rev
    visit: 2
    output: "---\n$status: again\nnote: no\n---\n"
  - role: rev
    output: "---\n$status: ok\nnote: yes\n---\n"
`

// visit is a person's work with one server.
type visit struct {
	*lab
	access
	clone, script string
	thread, fork  string
	stopped       bool // nothing can be tried any more
}

// deed is something that people do with a store. do returns what the user reads if it doesn't
// hold.
type deed struct {
	name string
	do   func(*visit) string
}

// deeds are all of them, in their order. The names are the table's columns.
var deeds = []deed{
	{"list", (*visit).listNothing},
	{"start", (*visit).start},
	{"step", func(v *visit) string { return v.step(0, v.thread) }},
	{"asks", func(v *visit) string { return v.step(0, v.thread) }},
	{"resume", func(v *visit) string { return v.wants(0, "", "thread", "resume", v.thread, "-p", "that") }},
	{"fork", (*visit).makeFork},
	{"at once", (*visit).stepAtOnce},
	{"to the end", func(v *visit) string { return v.step(0, v.thread, "--count", "9") }},
	{"list ", func(v *visit) string { return v.wants(0, `"status": "suspended"`, "thread", "list") }},
	{"show", func(v *visit) string { return v.wants(0, `"status": "ended"`, "thread", "show", v.thread) }},
	{"read", func(v *visit) string { return v.wants(0, secret, "thread", "read", v.thread) }},
	{"details", func(v *visit) string { return v.wants(0, "", "thread", "step-details", v.thread+":1") }},
	{"diff", func(v *visit) string { return v.wants(0, "made-again.txt", "thread", "diff", v.thread) }},
	{"fsck", func(v *visit) string { return v.wants(0, `"ok": true`, "fsck") }},
	{"history", func(v *visit) string { return v.wants(0, `"ok": true`, "fsck", "--history") }},
	{"cancel", func(v *visit) string { return v.wants(0, "", "thread", "cancel", v.fork) }},
	{"gc", func(v *visit) string { return v.wants(0, "", "gc", "--older-than", "0d") }},
	{"purge", func(v *visit) string { return v.wants(0, "", "purge", "--yes", "@"+v.write(v.dir+"/secret", secret)) }},
	{"history ", func(v *visit) string { return v.wants(0, `"ok": true`, "fsck", "--history") }},
	{"list all", func(v *visit) string { return v.wants(0, `"status": "ended"`, "thread", "list", "--all") }},
}

// result is what came of a row: what the user reads, by deed. Deeds that were not tried are
// missing.
type result struct {
	version string
	reads   map[string]string
}

// try does all deeds and compares them with what the row says of them.
func (l *lab) try() *result {
	l.Helper()
	r := &result{reads: map[string]string{}}
	if len(l.version) > 0 {
		r.version = readVersion(l.version)
	}
	v := &visit{lab: l, access: l.serve(l), clone: filepath.Join(l.dir, "clone"), script: l.file("script.yaml", script)}
	l.runWith(v.env, l.dir, "git", "clone", "-q", v.url, v.clone)
	for _, d := range deeds {
		read := d.do(v)
		r.reads[d.name] = read
		want := l.says[d.name]
		if (read == "") != (want == "") || !strings.Contains(read, want) {
			l.Errorf("%s: %q\nwant %q", d.name, read, want)
		}
		if v.stopped = v.stopped || d.name == l.last; v.stopped {
			break
		}
	}
	if !v.stopped && !l.Failed() {
		l.checkRepository()
	}
	return r
}

// checkRepository looks at the repository itself: with git, and for what was purged.
func (l *lab) checkRepository() {
	l.Helper()
	if out := l.run(l.repo, l.program(), "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		l.Errorf("git fsck: %s", out)
	}
	if len(l.says) > 0 {
		return
	}
	refs := l.run(l.repo, l.program(), "for-each-ref", "--format=%(refname)")
	if strings.Contains(refs, "refs/uwf/claims") {
		l.Errorf("claims are left: %s", refs)
	}
	if out := l.run(l.repo, l.program(), "log", "--all", "-p", "--format=%B"); strings.Contains(out, secret) {
		l.Error("the purged text is still there")
	}
}

var versionNumber = lazyregexp.New(`\d+(\.\d+)+[-+.\w]*`)

// readVersion is the first version in what a command prints.
func readVersion(command []string) string {
	out, _ := exec.Command(find(command[0]), command[1:]...).CombinedOutput() // some exit with 1 after it
	return versionNumber.FindString(string(out))
}

// listNothing lists threads before there is one, which is told.
func (v *visit) listNothing() string {
	_, read := v.uwf(0, "home", "thread", "list")
	if strings.HasPrefix(read, "exit 2: no uwf store here: URL has no branch uwf-state") {
		return ""
	}
	return read
}

func (v *visit) start() string {
	out, read := v.uwf(0, "home", "thread", "start", "flow", "-p", "Work on "+secret+".")
	v.thread = field(out, "thread")
	v.stopped = v.thread == ""
	return read
}

func (v *visit) makeFork() string {
	out, read := v.uwf(0, "home", "thread", "fork", v.thread+":1")
	v.fork = field(out, "thread")
	return read
}

func (v *visit) step(code int, thread string, more ...string) string {
	_, read := v.uwf(code, "home", v.stepArgs(thread, more...)...)
	return read
}

func (v *visit) stepArgs(thread string, more ...string) []string {
	return append([]string{"thread", "step", thread, "--agent", "uwf agent mock '" + v.script + "'"}, more...)
}

// stepAtOnce steps two threads at once, and one of them on another machine too. One of the two
// jobs may find that the other one has the thread.
func (v *visit) stepAtOnce() string {
	var both sync.WaitGroup
	var same, other, racer string
	both.Go(func() { same = v.step(0, v.thread) })
	both.Go(func() { other = v.step(0, v.fork) })
	both.Go(func() { _, racer = v.uwf(0, "elsewhere", v.stepArgs(v.thread)...) })
	both.Wait()
	const lost = "exit 4: "
	switch {
	case other != "":
		return other
	case same != "" && !strings.HasPrefix(same, lost):
		return same
	case racer != "" && !strings.HasPrefix(racer, lost):
		return racer
	case same != "" && racer != "":
		return same
	}
	done := 2 // steps before
	for _, read := range []string{same, racer} {
		if read == "" {
			done++
		}
	}
	out, read := v.uwf(0, "home", "thread", "steps", v.thread, "--jq", "[.steps[].step // 0] | max")
	if read == "" && strings.TrimSpace(out) != strconv.Itoa(done) {
		return fmt.Sprintf("there are %s steps, want %d", strings.TrimSpace(out), done)
	}
	return read
}

// wants runs a command whose output must contain a text.
func (v *visit) wants(code int, output string, args ...string) string {
	out, read := v.uwf(code, "home", args...)
	if read == "" && !strings.Contains(out, output) {
		return fmt.Sprintf("no %s in %s", output, out)
	}
	return read
}

// uwf runs uwf, at home or elsewhere. It returns what it printed, and what the user reads if the
// exit code is not the wanted one.
func (v *visit) uwf(code int, home string, args ...string) (out, read string) {
	ctx, cancel := context.WithTimeout(v.Context(), deedLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "uwf", args...)
	cmd.Dir = v.clone
	cmd.Env = append(v.environ(v.env...), "UWF_HOME="+filepath.Join(v.dir, home, ".uwf"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		waits, _, _ := strings.Cut(v.firstWords(stderr.String()), "; trying again")
		return "", fmt.Sprintf("no end within %v: %s", deedLimit, waits)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		v.Logf("uwf %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
		return "", fmt.Sprintf("exit %d: %s", got, v.firstWords(cmp.Or(stderr.String(), stdout.String())))
	}
	return stdout.String(), ""
}

// field is a field of a JSON object.
func field(object, name string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(object), &fields) != nil {
		return ""
	}
	value, _ := fields[name].(string)
	return value
}

// changing are the words of a message that are others at each run, and what stands for them.
var changing = []struct {
	word  *lazyregexp.Regexp
	stand string
}{
	{lazyregexp.New(`(http|ssh|file|git)://[^\s"']*[^\s"':,.;)]`), "URL"},
	{lazyregexp.New(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "THREAD"},
	{lazyregexp.New(`\b[0-9a-f]{7,64}\b`), "ID"},
	{lazyregexp.New(`\b\d+ bytes\b`), "N bytes"},
	{lazyregexp.New(`(^|[\s"'(])(/[\w.+-]+){2,}`), "${1}PATH"},
}

// firstWords is the message of what uwf printed, without notes before it and without what
// changes between runs.
func (v *visit) firstWords(said string) string {
	_, message, found := strings.Cut("\n"+said, "\nuwf: ")
	if !found {
		message = said
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(strings.TrimSpace(message), "\n", "; ")), " ")
	for _, c := range changing {
		text = c.word.ReplaceAllString(text, c.stand)
	}
	return text
}
