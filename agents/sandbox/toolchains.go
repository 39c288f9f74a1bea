package sandbox

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/internal/regular"
)

// toolFolders are toolchains that install themselves below the user's home, and the variable
// by which their programs, which call back into the folder, find it elsewhere.
var toolFolders = [...]struct{ dir, variable string }{
	{".rustup", "RUSTUP_HOME"}, {".nvm", "NVM_DIR"}, {".pyenv", "PYENV_ROOT"}, {".asdf", "ASDF_DATA_DIR"},
	{".local/share/mise", "MISE_DATA_DIR"}, {".sdkman", "SDKMAN_DIR"}, {".volta", "VOLTA_HOME"},
}

// cargoParts are what of Cargo's folder agents read. The folder itself is the run's own:
// Cargo writes there.
var cargoParts = [...]string{"bin", "registry"}

// nestedCredentials are files of credentials within a version of a tool, deep in the folder
// of a toolchain.
var nestedCredentials = [...]string{
	"etc/npmrc", "pip.conf", ".condarc", "lib/node_modules/npm/npmrc", ".npmrc", ".env",
	"conf/settings.xml", "conf/settings-security.xml", "gradle.properties", "init.d", "credentials", "credentials.toml",
}

// findToolFolders are the folders of toolchains that are there, by their variables.
func findToolFolders(environ []string) map[string]string {
	out := map[string]string{}
	home := Getenv(environ, "HOME")
	for _, t := range toolFolders {
		if dir := cmp.Or(Getenv(environ, t.variable), filepath.Join(home, t.dir)); filepath.IsAbs(dir) && isDir(dir) {
			out[t.variable] = dir
		}
	}
	return out
}

// cargoFolder is Cargo's own.
func cargoFolder(environ []string) string {
	return cmp.Or(Getenv(environ, "CARGO_HOME"), filepath.Join(Getenv(environ, "HOME"), ".cargo"))
}

// nestedLevels is how many levels below a toolchain's folder its versions lie at most.
const nestedLevels = 4

// nestedFiles remembers the credentials in the folders of toolchains: to find them takes hundreds
// of reads. A nil one looks each time.
type nestedFiles struct {
	mu    sync.Mutex
	found map[string][]string // by folder
}

// findIn returns the files of credentials of all versions findIn the folder of a toolchain.
func (n *nestedFiles) findIn(dir string) []string {
	if n == nil {
		return findNestedCredentials(dir, 0)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.found[dir]; !known {
		if n.found == nil {
			n.found = map[string][]string{}
		}
		n.found[dir] = findNestedCredentials(dir, 0)
	}
	return n.found[dir]
}

// findNestedCredentials reads a folder, which lies level levels below that of the toolchain, and
// those below it.
func findNestedCredentials(dir string, level int) (out []string) {
	entries, _ := os.ReadDir(dir) // agents can't read what this process can't
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	for _, name := range nestedCredentials {
		first, rest, _ := strings.Cut(name, "/")
		if place := filepath.Join(dir, name); level > 0 && there[first] && (rest == "" || pathExists(place)) {
			out = append(out, place)
		}
	}

	for _, e := range entries {
		if at := filepath.Join(dir, e.Name()); level < nestedLevels && (e.IsDir() || isLinkedFolder(at, e)) {
			out = append(out, findNestedCredentials(at, level+1)...)
		}
	}
	return out
}

// isLinkedFolder says whether an entry is a link to a folder that no entry beside it is.
func isLinkedFolder(at string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	to, err := os.Readlink(at)
	return err == nil && strings.Contains(to, "/") && isDir(at)
}

const (
	// maxSeeds is how many files of a machine's crates a run's home refers to.
	maxSeeds = 20_000
	// maxSeed is how large one of them is, in bytes, that the home has a copy of.
	maxSeed = 4 << 10
	// maxChoice is how large a file is, in bytes, that says which versions are used.
	maxChoice = 1 << 20
)

// fillHome gives a run's home, in the run's folder, the crates that this machine has, to be
// read, and which versions of tools are the user's choice. What can't be had is left out:
// tools do without it, or say what they miss.
func (c *Cell) fillHome(base *os.Root) {
	for _, part := range []string{"registry/index", "registry/cache"} {
		if from := filepath.Join(cargoFolder(c.o.Environ), part); filepath.IsAbs(from) && c.canReach(from) {
			_ = linkFiles(base, from, filepath.Join("home/.cargo", part))
		}
	}
	const mise = ".config/mise/config.toml"
	if root, err := os.OpenRoot(Getenv(c.o.Environ, "HOME")); err == nil {
		for _, name := range []string{".tool-versions", ".asdfrc", mise} {
			text, err := regular.Read(root, name, maxChoice)
			if name == mise {
				text = miseTools(string(text))
			}
			if at := filepath.Join("home", name); err == nil {
				_ = errors.Join(base.MkdirAll(filepath.Dir(at), 0o700), base.WriteFile(at, text, 0o600))
			}
		}
		_ = root.Close()
	}
}

// miseTools is the part of mise's settings that says which versions are used. Others hold
// variables, secret ones among them.
func miseTools(settings string) []byte {
	var out []byte
	in := false
	for line := range strings.Lines(settings) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "[") {
			in = name == "[tools]"
		}
		if in {
			out = append(out, line...)
		}
	}
	return out
}

// linkFiles makes the folders below from anew in another one, with links to their files. Small
// files are copied, since tools change them.
func linkFiles(base *os.Root, from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	left := maxSeeds
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 {
			return cmp.Or(err, fs.SkipAll)
		}
		at := filepath.Join(to, name)
		switch info, err := d.Info(); {
		case err != nil || !d.IsDir() && !d.Type().IsRegular():
			return err
		case d.IsDir():
			return base.MkdirAll(at, 0o700)
		case info.Size() <= maxSeed:
			text, err := regular.Read(root, name, maxSeed)
			return errors.Join(err, base.WriteFile(at, text, 0o600))
		}
		return base.Symlink(filepath.Join(from, name), at)
	})
}

// addToolFolders says in an environment where toolchains are, which look below HOME
// otherwise. Where mise is, what the workspace asks of it needs no other consent: it is
// confined.
func (c *Cell) addToolFolders(env []string) []string {
	found := findToolFolders(c.o.Environ)
	for _, t := range toolFolders {
		dir := found[t.variable]
		if dir == "" || Getenv(env, t.variable) != "" || !c.canReach(dir) {
			continue
		}
		env = append(env, t.variable+"="+dir)
		if t.variable == "MISE_DATA_DIR" {
			env = append(env, "MISE_TRUSTED_CONFIG_PATHS="+c.run.Workspace)
		}
	}
	return slices.Clip(env)
}
