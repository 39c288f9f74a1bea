package agents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/agents/sandbox"
)

// Command is an agent as the configuration names it.
type Command struct {
	Command string // a program, or a command line with shell-style quotes; empty: uwf-<alias>
	Args    []string
	Env     map[string]string // given to this agent only, besides the allow-list
	// OwnLogin lets the program of a Foreign agent use the login that it has on this machine, or
	// the one in Env.
	OwnLogin bool
}

// resolveCommand finds out what runs: the program's absolute path with its arguments, and
// what the configuration sets for it.
//
// An alias of the configuration goes first; everything else is a command line. In
// it `uwf` is this binary, `uwf-<agent>` is this binary's agent where PATH has no
// such program, and the bare name of one of this binary's agents is `uwf-<agent>`.
func (o Options) resolveCommand(line string) (resolved, error) {
	if c, ok := o.Aliases[line]; ok {
		command := c.Command
		if command == "" {
			command = "uwf-" + strings.TrimPrefix(line, "uwf-")
		}
		r, err := o.splitWords(command)
		if err != nil {
			return resolved{}, fmt.Errorf("agent %q of the configuration: %w", line, err)
		}
		r.argv, r.env, r.ownLogin = append(r.argv, c.Args...), c.Env, c.OwnLogin
		r.own = o.ownAgent(r.argv)
		return r, nil
	}
	if slices.Contains(o.Own, line) {
		line = "uwf-" + line
	}
	r, err := o.splitWords(line)
	r.own = o.ownAgent(r.argv)
	return r, err
}

// ownAgent is the agent of this binary that a whole command line runs: the configuration may
// have its words in two parts. Empty: it runs another program.
func (o Options) ownAgent(argv []string) string {
	n := len(o.Self)
	if n == 0 || len(argv) < n+2 || !slices.Equal(argv[:n], o.Self) || argv[n] != "agent" {
		return ""
	}
	return argv[n+1]
}

func (o Options) splitWords(line string) (resolved, error) {
	words, err := shlex.Split(line)
	if err != nil {
		return resolved{}, &CommandError{Line: line, Why: err.Error(), Fix: "close the quotes"}
	}
	if len(words) == 0 || words[0] == "" {
		return resolved{}, &CommandError{Line: line, Why: "it names no program", Fix: "set defaultAgent, or pass --agent"}
	}
	if words[0] == "uwf" && len(o.Self) > 0 {
		return resolved{argv: append(slices.Clone(o.Self), words[1:]...)}, nil
	}
	program, err := o.findProgram(line, words[0])
	if err == nil {
		return resolved{argv: append([]string{program}, words[1:]...)}, nil
	}
	if name, ok := strings.CutPrefix(words[0], "uwf-"); ok && slices.Contains(o.Own, name) {
		return resolved{argv: append(append(slices.Clone(o.Self), "agent", name), words[1:]...)}, nil
	}
	return resolved{}, err
}

// CommandLine writes words as a command line that a Spawner reads back as the same
// words.
func CommandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsAny(w, " \t\r\n'\"\\#") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// findProgram finds an executable file. Relative entries of PATH are passed over:
// agents run in a workspace, whose content is not trusted.
func (o Options) findProgram(line, name string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		if err := checkExecutable(name); err != nil {
			return "", &CommandError{Line: line, Why: err.Error(), Fix: "check the path and its x bit"}
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(sandbox.Getenv(o.Environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if file := filepath.Join(dir, name); checkExecutable(file) == nil {
			return file, nil
		}
	}
	return "", &CommandError{
		Line: line, Why: fmt.Sprintf("no program %q on PATH", name),
		Fix: "install it, name another with --agent, or use one of ours: " + strings.Join(o.Own, ", "),
	}
}

func checkExecutable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return &fs.PathError{Op: "run", Path: file, Err: fs.ErrPermission}
	}
	return nil
}
