package agents

import (
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/internal/proc"
)

// The variables of the process protocol.
const (
	EnvContext = "UWF_CONTEXT" // read-only folder: context.json, prompt.md, nodes.jsonl (the newest steps with their nodes, one a line)
	EnvStage   = "UWF_STAGE"   // folder for new nodes: <HASH>.json
	EnvThread  = "UWF_THREAD"
	// EnvMark is set in all that an agent, a check or what prepares a folder starts.
	EnvMark = proc.MarkName
	EnvRole = "UWF_ROLE"
	// EnvCallDir is where uwf was called: what relative paths in an agent's
	// command line are relative to, since the agent itself runs in the workspace.
	EnvCallDir = "UWF_CALL_DIR"
	// EnvBin is the uwf that runs the agent, for `uwf agent …`: it need not be on
	// PATH, and another one there may be of another version.
	EnvBin = "UWF_BIN"
	// EnvAllowShell opens the shell gate of the builtin agent when it is "1".
	EnvAllowShell = "UWF_BUILTIN_ALLOW_SHELL"
)

// allowed are the variables that a child gets from our own environment. They say
// where programs and caches are, and how to talk to a person; none of them holds
// a secret by its meaning.
var allowed = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "CI",
	"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GOROOT", "GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY",
	"GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "GOEXPERIMENT",
	"CGO_ENABLED", "CC", "CXX", "PKG_CONFIG_PATH",
	"JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "ANDROID_HOME",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "DOTNET_ROOT",
	"NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR",
	"VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION", "CONDA_PREFIX", "PYTHONPATH",
	"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "PLAYWRIGHT_BROWSERS_PATH",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "NIX_PROFILES", "NIX_SSL_CERT_FILE",
}

// CleanEnviron keeps of an environment (NAME=value) what an agent may have: the
// allow-list and LC_*. A value that is an URL with a user or password in it, as
// proxies often are, is left out.
func CleanEnviron(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !slices.Contains(allowed[:], name) && !strings.HasPrefix(name, "LC_") {
			continue
		}
		if holdsUserinfo(value) {
			continue
		}
		out = append(out, kv)
	}
	return out
}

// holdsUserinfo finds user:password@ in any of the URLs of a value such as
// GOPROXY, which lists several.
func holdsUserinfo(value string) bool {
	if !strings.Contains(value, "@") {
		return false
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		if u, err := url.Parse(part); err != nil || u.User != nil {
			return true
		}
		// A proxy may be written without a scheme.
		if u, err := url.Parse("http://" + part); err == nil && u.User != nil && !strings.HasPrefix(part, "/") {
			return true
		}
	}
	return false
}
