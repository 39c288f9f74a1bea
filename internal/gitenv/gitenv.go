// Package gitenv makes the environment of git programs that must not depend on whose machine
// it is. It runs nothing.
package gitenv

import (
	"fmt"
	"os"
	"strconv"
)

// Setting is one of git's configuration.
type Setting struct{ Key, Value string }

// Clean is an environment without the configuration of user or system, without prompts, and
// with these settings, which overrule what a repository's own file says.
func Clean(settings []Setting) []string {
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_DEFAULT_HASH=sha1",
		"LC_ALL=C",
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)),
	}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.Value))
	}
	return env
}
