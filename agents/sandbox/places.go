package sandbox

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// system is what every program may need to read. Of /etc only what programs and
// their libraries ask for; of /sys what runtimes size themselves by. "*" stands for what
// a distribution puts a version into.
var system = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/home/linuxbrew/.linuxbrew",
	"/snap", "/run/current-system/sw",
	"/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
	"/etc/alternatives", "/etc/bash.bashrc", "/etc/bash_completion.d", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/crypto-policies", "/etc/debian_version", "/etc/dpkg", "/etc/environment", "/etc/fonts", "/etc/gai.conf",
	"/etc/gitattributes", "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hostname", "/etc/hosts", "/etc/inputrc",
	"/etc/java", "/etc/java-*-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/locale.conf",
	"/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/mailcap", "/etc/manpath.config", "/etc/maven", "/etc/mime.types",
	"/etc/nsswitch.conf", "/etc/openssl", "/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/php", "/etc/pki/ca-trust",
	"/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/profile", "/etc/profile.d", "/etc/protocols",
	"/etc/python3", "/etc/redhat-release", "/etc/resolv.conf", "/etc/rpc", "/etc/services", "/etc/shells", "/etc/skel",
	"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
	"/etc/vim", "/etc/xdg", "/etc/zsh",
	"/run/resolvconf", "/run/systemd/resolve", "/var/cache/fontconfig", "/var/lib/ca-certificates",
}

// toolVariables name folders and files of toolchains. Several may stand in one,
// separated by colons.
var toolVariables = [...]string{
	"GOROOT", "JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "ANDROID_HOME", "RUSTUP_HOME", "DOTNET_ROOT",
	"NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "VIRTUAL_ENV", "PYENV_ROOT", "CONDA_PREFIX",
	"PYTHONPATH", "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "PLAYWRIGHT_BROWSERS_PATH",
	"LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "NIX_PROFILES", "RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
}

// closedVariables name files and folders of the job that agents must not read, nor
// anything in them.
var closedVariables = [...]string{
	"GITHUB_EVENT_PATH", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY",
	"UWF_HOME", "WORKFLOW_STORAGE_ROOT", "UNCAGED_WORKFLOW_STORAGE_ROOT", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
}

// closedPlaces are closed wherever they exist.
var closedPlaces = [...]string{
	"/github/file_commands", "/github/workflow", "/run/docker.sock", "/run/containerd", "/run/podman", "/run/secrets", "/run/user",
}

// sharedVariables and sharedPlaces are folders of many programs, which agents must not
// read either, but for the toolchains that lie in them.
var (
	sharedVariables = [...]string{"HOME", "RUNNER_TEMP", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
	sharedPlaces    = [...]string{"/github/home", "/github/runner_temp", "/root"}
)

// runnerFiles are what a self-hosted runner proves itself with.
var runnerFiles = [...]string{".credentials", ".credentials_rsaparams", ".runner", ".env"}

// Getenv returns a variable of an environment (NAME=value), the last of its name; empty
// where it is not set.
func Getenv(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// resolvePath is a path without symlinks, as far as it exists.
func resolvePath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// deniedPaths are places that agents must not read, without symlinks.
type deniedPaths struct {
	closed []string // with all that is in them
	shared []string // but for what is named in them
}

// findDeniedPaths are those of the job and of the user's home. The root folder is none: a HOME
// of "/" says nothing.
func (o Options) findDeniedPaths() deniedPaths {
	getenv := func(name string) string { return Getenv(o.Environ, name) }
	closed := slices.Concat(closedPlaces[:], o.Protect, lists.Map(closedVariables[:], getenv))
	shared := slices.Concat(sharedPlaces[:], lists.Map(sharedVariables[:], getenv))
	// A runner keeps its temporary files in _work/_temp below its own folder.
	if temp := Getenv(o.Environ, "RUNNER_TEMP"); filepath.IsAbs(temp) {
		for _, name := range runnerFiles {
			closed = append(closed, filepath.Join(temp, "..", "..", name))
		}
	}
	return newDeniedPaths(closed, shared)
}

// newDeniedPaths resolves places. One that is shared is not closed, whatever else it is: that
// of uwf may be the home itself.
func newDeniedPaths(closed, shared []string) deniedPaths {
	shared = resolveAll(shared)
	closed = lists.Filter(resolveAll(closed), func(p string) bool { return !slices.Contains(shared, p) })
	return deniedPaths{closed: closed, shared: shared}
}

// resolveAll are places without symlinks, but for those that are not absolute and the
// root folder.
func resolveAll(places []string) []string {
	known := map[string]string{}
	var out []string
	for _, p := range places {
		if !filepath.IsAbs(p) {
			continue
		}
		p = filepath.Clean(p)
		if p = cmp.Or(resolveOnce(known, p), p); p != "/" {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resolveOnce is a clean absolute path without symlinks, or empty if there is no such path. It
// looks at each folder once: hundreds of places lie in few folders.
func resolveOnce(known map[string]string, path string) string {
	if path == "/" {
		return path
	}
	if real, ok := known[path]; ok {
		return real
	}
	real := ""
	if dir := resolveOnce(known, filepath.Dir(path)); dir != "" {
		at := filepath.Join(dir, filepath.Base(path))
		info, err := os.Lstat(at)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			real, _ = filepath.EvalSymlinks(at)
		default:
			real = at
		}
	}
	known[path] = real
	return real
}

// withCredentials are these places and those of credentials.
func (w deniedPaths) withCredentials(o Options, toolchains []string) deniedPaths {
	shared := append(slices.Clone(w.shared), Getenv(o.Environ, "XDG_CACHE_HOME"))
	for _, home := range homeFolders(o.Environ) {
		shared = append(shared, lists.Map(sharedFolders[:], func(dir string) string { return filepath.Join(home, dir) })...)
	}
	return newDeniedPaths(slices.Concat(w.closed, o.findCredentials(toolchains)), shared)
}

// isWithin says whether a path is another one or below it.
func isWithin(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

// deniedIn is a denied place that opening another one would open, or empty.
func (w deniedPaths) deniedIn(place string) string {
	for _, p := range slices.Concat(w.closed, w.shared) {
		if isWithin(p, place) {
			return p
		}
	}
	return ""
}

// isClosed says whether a place is one that is not to be read itself.
func (w deniedPaths) isClosed(place string) bool {
	return slices.Contains(w.shared, place) || slices.ContainsFunc(w.closed, func(p string) bool { return isWithin(place, p) })
}

// readablePlaces are the folders and files of the system and of toolchains that exist
// here. What encloses a denied place is opened in parts.
func readablePlaces(o Options) []string {
	home := Getenv(o.Environ, "HOME")
	var places []string
	for _, dir := range filepath.SplitList(Getenv(o.Environ, "PATH")) {
		places = append(places, dir, prefixOf(dir, home), prefixOf(resolvePath(dir), home))
	}
	for _, name := range toolVariables {
		places = append(places, filepath.SplitList(Getenv(o.Environ, name))...)
	}
	places = slices.AppendSeq(places, maps.Values(findToolFolders(o.Environ)))
	for _, part := range cargoParts {
		places = append(places, filepath.Join(cargoFolder(o.Environ), part))
	}
	if cache := moduleCache(o.Environ); cache != "" {
		places = append(places, cache)
	}
	places = slices.DeleteFunc(places, func(p string) bool { return !filepath.IsAbs(p) })
	w := o.findDeniedPaths().withCredentials(o, places)
	for _, pattern := range system {
		found, _ := filepath.Glob(pattern) // a malformed pattern would be found by no test
		places = append(places, found...)
	}
	var out []string
	for _, p := range places {
		out = append(out, w.partsOf(resolvePath(p), 0)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// prefixOf is the folder of a toolchain whose programs lie in dir, as …/bin does:
// they need the libraries beside it. Near the top of the user's home a bin folder
// has other neighbours.
func prefixOf(dir, home string) string {
	prefix := filepath.Dir(dir)
	if base := filepath.Base(dir); base != "bin" && base != "sbin" {
		return ""
	}
	const least = 3 // folders below home
	if rel, ok := strings.CutPrefix(prefix, home+"/"); ok && strings.Count(rel, "/")+1 < least {
		return ""
	}
	return prefix
}

// maxDepth and maxParts bound how far a folder is taken apart.
const (
	maxDepth = 8
	maxParts = 256
)

// partsOf are a place, or what lies in it besides denied places. A place that is one itself, or
// missing, has none.
func (w deniedPaths) partsOf(place string, depth int) []string {
	if _, err := os.Stat(place); err != nil || place == "/" || w.isClosed(place) {
		return nil
	}
	if w.deniedIn(place) == "" {
		return []string{place}
	}
	entries, err := os.ReadDir(place)
	if err != nil || depth == maxDepth || len(entries) > maxParts {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // what it points to is asked for by itself
			out = append(out, w.partsOf(filepath.Join(place, e.Name()), depth+1)...)
		}
	}
	return out
}

// moduleCache is the Go module cache of this process's user, where there is one.
func moduleCache(environ []string) string {
	places := []string{Getenv(environ, "GOMODCACHE")}
	for _, dir := range filepath.SplitList(Getenv(environ, "GOPATH")) {
		places = append(places, filepath.Join(dir, "pkg/mod"))
	}
	for _, dir := range append(places, filepath.Join(Getenv(environ, "HOME"), "go/pkg/mod")) {
		if filepath.IsAbs(dir) && isDir(filepath.Join(dir, "cache", "download")) {
			return dir
		}
	}
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
