package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// private are variables that point to places which an agent can't write, or which
// are not its own. Without them the tools choose places below HOME.
var private = [...]string{
	"HOME", "TMPDIR", "USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "GRADLE_USER_HOME", "DENO_DIR",
}

// Environ turns an environment (NAME=value) for agents into that of this run, and leaves the
// one it is given as it is: HOME, TMPDIR, XDG_RUNTIME_DIR, USER and LOGNAME are the run's own, the
// variables of private are taken out, so that caches lie below HOME, GOFLAGS, GOPROXY and
// JAVA_TOOL_OPTIONS are added to, and variables such as RUSTUP_HOME are set where there are none,
// EnvClosedHome in any case. Go modules that this machine has already are taken from its cache,
// which can only be read.
func (c *Cell) Environ(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(private[:], name)
	})
	name := AgentName
	if c.policy.UID == keep {
		name = Getenv(env, "USER")
	}
	out = append(out, "HOME="+c.home, "TMPDIR="+c.temp, "XDG_RUNTIME_DIR="+c.temp, "USER="+name, "LOGNAME="+name)
	// The JVM asks neither TMPDIR nor HOME.
	java := fmt.Sprintf("%s -Djava.io.tmpdir='%s' -Duser.home='%s' -Duser.name='%s'", Getenv(out, "JAVA_TOOL_OPTIONS"), c.temp, c.home, name)
	out = setVariable(out, "JAVA_TOOL_OPTIONS", strings.TrimSpace(java))
	// Go's module cache takes its own right to write away otherwise, and could then
	// not be removed by everybody.
	out = setVariable(out, "GOFLAGS", strings.TrimSpace(Getenv(out, "GOFLAGS")+" -modcacherw"))
	if cache := moduleCache(c.o.Environ); cache != "" && c.canReach(cache) {
		proxy := cmp.Or(Getenv(out, "GOPROXY"), "https://proxy.golang.org,direct")
		out = setVariable(out, "GOPROXY", "file://"+filepath.Join(cache, "cache", "download")+","+proxy)
	}
	if closed := c.o.listClosedHome(); closed != "" {
		out = append(out, EnvClosedHome+"="+closed)
	}
	return c.addToolFolders(out)
}

// Confined adds to an environment what the helper needs. It is the last that is
// done to it.
func (c *Cell) Confined(env []string) ([]string, error) {
	if c.seatbelt { // its program takes out what would load libraries
		return env, nil
	}
	return c.policy.helperEnviron(env)
}

// canReach says whether the agent's user gets to a place at all.
func (c *Cell) canReach(place string) bool {
	return c.policy.UID <= 0 || closedAncestor(filepath.Join(place, "x"), c.policy.UID, c.policy.GID) == ""
}

func setVariable(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}
