// Command agents records what the real agent CLIs print: the files below
// agents/cli/testdata, against which their parsers and their fakes are tested. Each runs
// alone, with a fake model and a HOME of its own, and with the flags of agents/cli.
//
//	.ci/agents/install DIR
//	cd .ci/tools/agents && go run . -bin DIR/node_modules/.bin [CLI[/CASE]]...
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/internal/modeltest"
)

// limit is how long a CLI may take: some retry for minutes.
const limit = 100 * time.Second

// record is one run of a CLI: its name becomes the files' names.
type record struct {
	name   string
	prompt string
	// after is the run whose HOME and session this one goes on with.
	after string
	// change changes the command line and the environment.
	change func(*run)
	// stop has the CLI get SIGTERM when its tool runs.
	stop bool
}

func records(c cli) []record {
	all := []record{
		{name: "version", change: func(r *run) { r.argv = []string{c.program, "--version"} }},
		{name: "unknown-flag", prompt: "Do it.", change: func(r *run) { r.argv = slices.Insert(r.argv, c.flagsAt, "--no-such-flag") }},
		{name: "plain", prompt: "Do it. [[plain]]"},
		{name: "tool", prompt: "Do it."},
		{name: "badfinal", prompt: "Do it. [[badfinal]]"},
		{name: "resume", prompt: "The answer has no frontmatter.", after: "badfinal"},
		{name: "resume-unknown", prompt: "The answer has no frontmatter.", change: func(r *run) { r.resume("01234567-89ab-4cde-8f01-23456789abcd") }},
		{name: "empty", prompt: "Do it. [[empty]]"},
		{name: "cut", prompt: "Do it. [[cut]]"},
		{name: "sigterm", prompt: "Do it. [[sleep]]", stop: true},
	}
	for _, status := range []int{400, 401, 403, 429, 500, 529} {
		all = append(all, record{name: fmt.Sprintf("err%d", status), prompt: fmt.Sprintf("Do it. [[err%d]]", status)})
	}
	return append(all, c.more...)
}

// run is what is about to be run.
type run struct {
	cli             cli
	dir, home, work string // dir holds the other two
	url             string
	argv, env       []string
	session         string
	stdin           string
}

func (r *run) resume(session string) {
	r.session = session
	r.argv = r.cli.argv(r, session)
}

func main() {
	bin := flag.String("bin", "", "the folder with the CLIs, as .ci/agents/install prints it")
	out := flag.String("out", "../../../agents/cli/testdata", "where the recordings go")
	flag.Parse()
	if err := recordAll(*bin, *out, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func recordAll(bin, out string, only []string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	if err := os.Setenv("PATH", bin+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	for _, c := range clis {
		version, err := os.ReadFile(filepath.Join(bin, "..", c.pkg, "package.json"))
		if err != nil {
			return err
		}
		number := regexp.MustCompile(`"version": *"([^"]+)"`).FindSubmatch(version)[1]
		homes := map[string]*run{}
		for _, rec := range records(c) {
			id := c.program + "/" + rec.name
			wanted := func(name string) bool {
				return len(only) == 0 || slices.Contains(only, c.program) || slices.Contains(only, c.program+"/"+name)
			}
			needed := slices.ContainsFunc(records(c), func(r record) bool { return r.after == rec.name && wanted(r.name) })
			if !wanted(rec.name) && !needed {
				continue
			}
			began := time.Now()
			if err := recordOne(c, rec, filepath.Join(out, c.program, string(number)), bin, homes); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			fmt.Printf("%s %.1fs\n", id, time.Since(began).Seconds())
		}
		for _, r := range homes {
			_ = os.RemoveAll(r.dir) // a temporary folder
		}
	}
	return nil
}

func recordOne(c cli, rec record, out, bin string, homes map[string]*run) error {
	model := &modeltest.Server{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Should-Retry", "false") // as uwf's gateway does on every refusal
		model.ServeHTTP(w, r)
	}))
	defer s.CloseClientConnections()
	r := &run{cli: c, url: s.URL, stdin: rec.prompt}
	if before := homes[rec.after]; rec.after != "" {
		r.dir, r.home, r.work = before.dir, before.home, before.work
		r.resume(before.session)
	} else if err := prepare(r); err != nil {
		return err
	}
	homes[rec.name] = r
	r.env = append(r.env, "PATH="+os.Getenv("PATH"), "HOME="+r.home, "TMPDIR="+filepath.Join(r.dir, "tmp"), "CI=1", "TERM=dumb", "NO_COLOR=1",
		"CODEX_HOME="+filepath.Join(r.home, ".codex"), "CLAUDE_CONFIG_DIR="+filepath.Join(r.home, ".claude"), "IS_SANDBOX=1")
	r.env = append(r.env, c.env(r)...)
	if rec.change != nil {
		rec.change(r)
	}
	stdout, stderr, exit, err := execute(r, rec.stop)
	if err != nil {
		return err
	}
	if rec.after == "" && c.session != nil {
		r.session = c.session(r, stdout)
	}
	files := map[string]string{".stdout": stdout, ".stderr": stderr, ".exit": exit + "\n", ".requests": list(model)}
	if last, err := os.ReadFile(filepath.Join(r.dir, "last.md")); err == nil {
		files[".last"] = string(last)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for kind, text := range files {
		if err := os.WriteFile(filepath.Join(out, rec.name+kind), []byte(clean(r, bin, text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func prepare(r *run) (err error) {
	if r.dir, err = os.MkdirTemp("", "uwf-record-"); err != nil {
		return err
	}
	r.home, r.work = filepath.Join(r.dir, "home"), filepath.Join(r.dir, "work")
	for _, d := range []string{r.home, r.work, filepath.Join(r.dir, "tmp"), filepath.Join(r.home, ".codex"), filepath.Join(r.home, ".gemini")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	init := exec.Command("git", "init", "-q", r.work)
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	r.argv = r.cli.argv(r, "")
	return nil
}

// execute runs a CLI in a process group of its own. exit is the exit code, or the signal
// that ended it.
func execute(r *run, stop bool) (stdout, stderr, exit string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	path, err := exec.LookPath(r.argv[0])
	if err != nil {
		return "", "", "", err
	}
	cmd := exec.Command(path, r.argv[1:]...)
	var outs, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.work, r.env, strings.NewReader(r.stdin), &outs, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return "", "", "", err
	}
	group := -cmd.Process.Pid
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := ""
	for waiting := true; waiting; {
		select {
		case err = <-done:
			waiting = false
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(r.work, "started")); stop && err == nil {
				stop = false
				_ = syscall.Kill(group, syscall.SIGTERM)
			}
		case <-ctx.Done():
			late = fmt.Sprintf(" (killed after %s)", limit)
			_ = syscall.Kill(group, syscall.SIGKILL)
			err, waiting = <-done, false
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it left
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) {
		return "", "", "", err
	}
	exit = fmt.Sprint(cmd.ProcessState.ExitCode())
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit = "signal " + fmt.Sprint(int(ws.Signal()))
	}
	return outs.String(), errs.String(), exit + late, nil
}

// list is a line for each request: method, path, and the headers that matter to a gateway.
func list(model *modeltest.Server) string {
	var b strings.Builder
	for _, q := range model.Requests() {
		fmt.Fprintf(&b, "%s %s %d", q.Method, q.URL, q.Status)
		for _, name := range []string{"Accept", "Anthropic-Version", "Authorization", "Content-Encoding", "X-Api-Key", "X-Goog-Api-Key"} {
			if v := q.Header.Get(name); v != "" {
				fmt.Fprintf(&b, " %s=%q", name, v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
