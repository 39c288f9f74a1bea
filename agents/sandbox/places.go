package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// secretVariables name files and folders of the job that agents must not read.
var secretVariables = [...]string{
	"HOME", "RUNNER_TEMP", "GITHUB_EVENT_PATH", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE",
	"GITHUB_STEP_SUMMARY", "UWF_HOME", "WORKFLOW_STORAGE_ROOT", "UNCAGED_WORKFLOW_STORAGE_ROOT", "XDG_RUNTIME_DIR",
	"SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
}

// secretPlaces are protected wherever they exist.
var secretPlaces = [...]string{
	"/github/file_commands", "/github/workflow", "/github/home", "/github/runner_temp", "/root",
	"/run/docker.sock", "/run/containerd", "/run/podman", "/run/secrets", "/run/user",
}

// runnerFiles are what a self-hosted runner proves itself with.
var runnerFiles = [...]string{".credentials", ".credentials_rsaparams", ".runner", ".env"}

// lookup returns a variable of an environment, the last of its name.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// resolved is a path without symlinks, as far as it exists.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// protected are the places that stay closed, without symlinks. The root folder is
// none: a HOME of "/" says nothing.
func (s *Sandbox) protected() []string { return s.o.protected() }

func (o Options) protected() []string {
	places := slices.Concat(secretPlaces[:], o.Protect)
	for _, name := range secretVariables {
		places = append(places, lookup(o.Environ, name))
	}
	// A runner keeps its temporary files in _work/_temp below its own folder.
	if temp := lookup(o.Environ, "RUNNER_TEMP"); filepath.IsAbs(temp) {
		for _, name := range runnerFiles {
			places = append(places, filepath.Join(temp, "..", "..", name))
		}
	}
	var out []string
	for _, p := range places {
		if !filepath.IsAbs(p) {
			continue
		}
		if p = resolved(p); p != "/" {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// within says whether a path is another one or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// holds is a protected place that opening a place would open, or empty.
func holds(place string, protected []string) string {
	for _, p := range protected {
		if within(p, place) {
			return p
		}
	}
	return ""
}

// readable are the folders and files of the system and of toolchains that exist
// here. What encloses a protected place is opened in parts.
func readable(o Options) []string {
	protected := o.protected()
	home := lookup(o.Environ, "HOME")
	var places []string
	for _, dir := range filepath.SplitList(lookup(o.Environ, "PATH")) {
		places = append(places, dir, prefixOf(dir, home), prefixOf(resolved(dir), home))
	}
	for _, name := range toolVariables {
		places = append(places, filepath.SplitList(lookup(o.Environ, name))...)
	}
	if filepath.IsAbs(home) {
		places = append(places, filepath.Join(home, ".rustup"))
	}
	if cache := moduleCache(o.Environ); cache != "" {
		places = append(places, cache)
	}
	for _, pattern := range system {
		found, _ := filepath.Glob(pattern) // a malformed pattern would be found by no test
		places = append(places, found...)
	}
	var out []string
	for _, p := range places {
		if filepath.IsAbs(p) {
			out = append(out, parts(resolved(p), protected, 0)...)
		}
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

// parts are a place, or what lies in it besides what is protected. A place that is
// protected itself, or missing, has none.
func parts(place string, protected []string, depth int) []string {
	if _, err := os.Stat(place); err != nil || slices.Contains(protected, place) || place == "/" {
		return nil
	}
	if holds(place, protected) == "" {
		return []string{place}
	}
	entries, err := os.ReadDir(place)
	if err != nil || depth == maxDepth || len(entries) > maxParts {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // what it points to is asked for by itself
			out = append(out, parts(filepath.Join(place, e.Name()), protected, depth+1)...)
		}
	}
	return out
}

// moduleCache is the Go module cache of this process's user, where there is one.
func moduleCache(environ []string) string {
	for _, dir := range []string{
		lookup(environ, "GOMODCACHE"), sub(firstOf(lookup(environ, "GOPATH")), "pkg/mod"), sub(lookup(environ, "HOME"), "go/pkg/mod"),
	} {
		if !filepath.IsAbs(dir) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, "cache", "download")); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

func firstOf(list string) string {
	if all := filepath.SplitList(list); len(all) > 0 {
		return all[0]
	}
	return ""
}

func sub(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}
