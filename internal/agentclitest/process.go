package agentclitest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

type (
	object = map[string]any
	list   = []any
)

// exit ends the process with a message on stderr.
func exit(code int, format string, args ...any) {
	if format != "" {
		_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
	os.Exit(code)
}

// printLine prints one line of JSON.
func printLine(v any) {
	printJSON(os.Stdout, "", v)
}

// printJSON prints JSON as JavaScript does, which leaves < and > as they are.
func printJSON(to io.Writer, indent string, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
}

// parseFlags parses a command line: flags are the words that start with a dash, those of
// valued have a value. Unknown is the first that is in neither list.
func parseFlags(args, plain, valued []string) (flags map[string][]string, rest []string, unknown string) {
	flags = map[string][]string{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, has := strings.Cut(arg, "=")
		switch {
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			rest = append(rest, arg)
		case slices.Contains(valued, name):
			if !has && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			flags[name] = append(flags[name], value)
		case slices.Contains(plain, name):
			flags[name] = append(flags[name], "")
		default:
			return flags, rest, arg
		}
	}
	return flags, rest, ""
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ran is what became of a tool's command.
type ran struct {
	out       string
	code, pid int
}

// runTool runs a command as the agents' shell tools do: in the workspace, with the agent's
// environment, in its process group or in one of its own, which outlives the agent.
func runTool(command string, ownGroup bool) ran {
	out, err := os.CreateTemp("", "tool") // a pipe would be held by what it starts in the background
	if err != nil {
		return ran{out: err.Error(), code: -1}
	}
	defer func() { _ = errors.Join(out.Close(), os.Remove(out.Name())) }()
	cmd := exec.Command("/bin/bash", "-c", command) //nolint:gosec // the test's model says it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: ownGroup}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return ran{out: err.Error(), code: -1}
	}
	said, err := os.ReadFile(out.Name())
	if err != nil {
		return ran{out: err.Error(), code: -1}
	}
	return ran{string(said), cmd.ProcessState.ExitCode(), cmd.Process.Pid}
}

// startTool runs a command in the background, and returns what waits for its end.
func startTool(command string) (wait func()) {
	cmd := exec.Command("/bin/bash", "-c", command) //nolint:gosec // as above
	if err := cmd.Start(); err != nil {
		exit(1, "%v", err)
	}
	return func() { _ = cmd.Wait() } // whatever its end is
}

// plant runs a command that a workspace has planted.
func plant(command string) string {
	cmd := exec.Command("sh", "-c", command) //nolint:gosec // the test says it
	out, _ := cmd.Output()                   // what it makes is the test
	return strings.TrimSpace(string(out))
}

// hooks are commands of a workspace's settings, by event.
type hooks map[string][]struct{ Hooks []struct{ Command string } }

func (all hooks) runHooks(event string) {
	for _, one := range all[event] {
		for _, h := range one.Hooks {
			plant(h.Command)
		}
	}
}

// startServers starts the MCP servers that a file names; they read nothing and end.
func startServers(file, key string) {
	var all map[string]map[string]struct {
		Command string
		Args    []string
	}
	_ = json.Unmarshal([]byte(readFiles(file)), &all) // a broken file starts none
	for _, s := range all[key] {
		plant(s.Command + " " + quoteWords(s.Args) + " </dev/null")
	}
}

func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// loadDotenv sets what a workspace's .env says and the environment does not.
func loadDotenv() {
	for line := range strings.Lines(readFiles(".env")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if _, set := os.LookupEnv(name); ok && !set {
			_ = os.Setenv(name, value) // a name that is none is left out, as there
		}
	}
}

// refusal is an answer of the model that is none. Its status is 0 where the connection broke.
type refusal struct {
	status        int
	body, message string
	kind          string // of the error, in the wire's words
}

// ask posts a request, and gives each event of the answer's stream to take.
func ask(url string, header map[string]string, body object, take func(event object)) *refusal {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(b)) //nolint:noctx // it ends with the process
	if err != nil {
		return &refusal{message: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &refusal{message: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body) // what there is of it
		var said struct {
			Error struct{ Message, Type string }
		}
		_ = json.Unmarshal(text, &said) // as above
		return &refusal{status: resp.StatusCode, body: string(text), message: said.Error.Message, kind: said.Error.Type}
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			var event object
			if json.Unmarshal([]byte(data), &event) == nil {
				take(event)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return &refusal{message: err.Error()}
	}
	return nil
}

// session is a conversation in the wire's own form, kept in a file.
type session struct {
	file       string
	background func() // waits for the end of what was started so; nil: nothing was
	Messages   list
}

// awaitBackground waits for what runs in the background.
func (s *session) awaitBackground() {
	if s.background != nil {
		s.background()
	}
}

// load reads the session that a file holds.
func (s *session) load() bool {
	b, err := os.ReadFile(s.file)
	return err == nil && json.Unmarshal(b, s) == nil
}

func (s *session) save() {
	b, err := json.Marshal(s)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(s.file), 0o700), os.WriteFile(s.file, b, 0o600))
	}
	if err != nil {
		exit(1, "%v", err)
	}
}

// field is a field of that type, the zero value where there is none.
func field[T any](o object, name string) T {
	v, _ := o[name].(T)
	return v
}

// readFiles joins what is in those files that are there.
func readFiles(names ...string) string {
	var all []string
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil {
			all = append(all, string(b))
		}
	}
	return strings.Join(all, "\n")
}

// homeFolder is the folder that a variable names, or else one below HOME.
func homeFolder(variable, below string) string {
	return cmp.Or(os.Getenv(variable), filepath.Join(os.Getenv("HOME"), below))
}

// notInNames is what a folder's name loses where it becomes one of a session.
var notInNames = lazyregexp.New(`[^A-Za-z0-9]`)

// projectName is what the workspace is called among the sessions in HOME.
func projectName() string { return notInNames.ReplaceAllString(workFolder(), "-") }

func workFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		exit(1, "%v", err)
	}
	return dir
}

func readPrompt() string {
	b, err := io.ReadAll(os.Stdin)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		exit(1, "Error: Input must be provided either through stdin or as a prompt argument when using --print")
	}
	return string(b)
}
