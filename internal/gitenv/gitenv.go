// Package gitenv makes the environment and the arguments of git programs that must not depend on
// whose machine it is. It runs nothing.
package gitenv

import (
	"fmt"
	"os"
	"strconv"
)

// Setting is one of git's configuration.
type Setting struct{ Key, Value string }

// Clean is an environment without the configuration of user or system, and without prompts.
func Clean() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_DEFAULT_HASH=sha1",
		"LC_ALL=C",
	}
}

// Args are arguments of git, before its verb, that overrule what a repository's own file says.
// Every git reads them: they hold also if an old one is on PATH.
func Args(settings ...Setting) []string {
	var args []string
	for _, s := range settings {
		args = append(args, "-c", s.Key+"="+s.Value)
	}
	return args
}

// Variables say the same, for keys with a "=" and for a program that takes no arguments, such as
// git-http-backend. Git before 2.31 does not read them.
func Variables(settings []Setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.Value))
	}
	return env
}
