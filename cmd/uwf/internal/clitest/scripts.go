package clitest

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/testmem"
	"github.com/united-workforce/uwf/internal/testmode"
)

// Main runs the tests of a package whose scripts, agents and jobs run uwf: it puts a
// uwf with FaultyMain on PATH, and other programs of the package beside it.
func Main(m *testing.M, programs map[string]func()) {
	all := map[string]func(){"uwf": FaultyMain}
	maps.Copy(all, programs)
	testscript.Main(testmem.Spend(m), all)
}

// RunScripts runs the scripts of testdata/script: what a person could type, on real
// repositories. `exits CODE uwf …` runs in this process, over Remotes of the script's
// own; `exec uwf …` is a process.
func RunScripts(t *testing.T) {
	t.Helper()
	testmode.NeedGit(t)
	const dir = "testdata/script"
	names, err := setVariables(dir)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(testmode.GitVariable) == "" {
		runScripts(t, dir, names, "")
		return
	}
	testmode.EachGit(t, func(t *testing.T, git string) { runScripts(t, dir, names, git+string(filepath.ListSeparator)) })
}

// runScripts runs the scripts with what comes first on PATH.
func runScripts(t *testing.T, dir string, names []string, first string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", first+e.Getenv("PATH"))
			return setUp(e, names)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    runExpecting,
			"input":    readInput,
			"thread":   makeThread,
			"grow":     growFile,
			"take":     takeVariable,
			"follow":   followAdvice,
			"near":     mistypeID,
			"gocache":  shareGoCache,
			"provider": serveModels,
			"ocas":     writeOldStore,
		},
	})
}

// console is what one script types into.
type console struct {
	Console
	names []string // of the variables that may be set
}

type consoleKey struct{}

var assignment = lazyregexp.New(`(?m)^(?:\[[^\]]*\] )?env +.*$`)

// setVariables are the names of the environment's variables that scripts set: a
// script's own environment can be asked for by name only.
func setVariables(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	names := []string{"GOCACHE"} // by the command gocache
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, line := range assignment.FindAllString(string(text), -1) {
			for _, word := range strings.Fields(line) {
				if name, _, ok := strings.Cut(word, "="); ok {
					names = append(names, strings.TrimPrefix(name, "'"))
				}
			}
		}
	}
	return names, nil
}

// setUp gives each script a home of its own, so that nothing of the machine's user is
// read.
func setUp(e *testscript.Env, names []string) error {
	home := filepath.Join(e.WorkDir, "home")
	config := filepath.Join(home, ".gitconfig")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte("[user]\n\tname = someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n"), 0o600); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("TZ", "UTC")
	e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	c := &console{Console: Console{Remotes: &Remotes{}}, names: slices.Clone(names)}
	for _, v := range e.Vars {
		name, _, _ := strings.Cut(v, "=")
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	e.Values[consoleKey{}] = c
	return nil
}

// consoleOf is the script's console, in the folder and with the environment that the
// script has now.
func consoleOf(ts *testscript.TestScript) *console {
	c, ok := ts.Value(consoleKey{}).(*console)
	if !ok {
		ts.Fatalf("the script has no console")
	}
	c.Dir, c.Environ = ts.MkAbs("."), nil
	for _, name := range c.names {
		if v := ts.Getenv(name); v != "" {
			c.Environ = append(c.Environ, name+"="+v)
		}
	}
	return c
}

// exits CODE PROGRAM [ARG]... runs a program that must end with that exit code: uwf in
// this process, any other, and a uwf that meets faults, in one of its own.
func runExpecting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var got int
	if c := consoleOf(ts); args[1] == "uwf" && !c.meetsFaults() {
		res := c.Run(context.Background(), args[2:]...)
		c.Stdin, got = "", res.Code
		_, err = io.WriteString(ts.Stdout(), res.Stdout)
		ts.Check(err)
		_, err = io.WriteString(ts.Stderr(), res.Stderr)
		ts.Check(err)
	} else {
		got = exitCode(ts, args[1:])
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func (c *console) meetsFaults() bool {
	return slices.ContainsFunc(c.Environ, func(v string) bool { return strings.HasPrefix(v, "UWF_TEST_") })
}

func exitCode(ts *testscript.TestScript, argv []string) int {
	err := ts.Exec(argv[0], argv[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// input FILE is what the next uwf of this process reads on stdin.
func readInput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: input FILE")
	}
	consoleOf(ts).Stdin = ts.ReadFile(args[0])
}

// grow FILE BYTES makes a file of that size.
func growFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grow FILE BYTES")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(errors.Join(f.Truncate(n), f.Close()))
}
