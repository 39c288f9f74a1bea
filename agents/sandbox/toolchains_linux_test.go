package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file below the home of a place, for everybody.
func (p *place) put(name, text string) string {
	p.Helper()
	at := filepath.Join(p.outside, name)
	p.must(os.MkdirAll(filepath.Dir(at), 0o755))
	p.must(os.WriteFile(at, []byte(text), 0o755))
	p.must(os.Chmod(at, 0o755)) //nolint:gosec // shims are run
	return at
}

// Toolchains below the home work where nothing names them: their programs call back into
// their folder. Credentials in it stay closed.
func TestToolchainsBelowHome(t *testing.T) {
	required(t)
	for _, tt := range []struct {
		name, shim, variable, data string
		closed                     string
	}{
		{"rustup", ".cargo/bin/cargo", "RUSTUP_HOME", ".rustup/toolchains/x/bin/cargo", ".cargo/credentials.toml"},
		{"nvm", ".nvm/versions/node/v20.1.0/bin/node", "NVM_DIR", ".nvm/nvm.sh", ".nvm/versions/node/v18.1.0/etc/npmrc"},
		{"pyenv", ".pyenv/shims/python3", "PYENV_ROOT", ".pyenv/libexec/pyenv", ".pyenv/versions/3.12.1/pip.conf"},
		{"asdf", ".asdf/shims/node", "ASDF_DATA_DIR", ".asdf/installs/nodejs/20/bin/node", ".asdf/installs/nodejs/20/etc/npmrc"},
		{"mise", ".local/share/mise/shims/node", "MISE_DATA_DIR", ".local/share/mise/installs/node/20/bin/node", ".local/share/mise/installs/node/20/lib/node_modules/npm/npmrc"},
		{"SDKMAN", ".sdkman/candidates/java/21/bin/java", "SDKMAN_DIR", ".sdkman/candidates/maven/3/bin/mvn", ".sdkman/.env"},
		{"Maven of SDKMAN", ".sdkman/candidates/java/21/bin/java", "SDKMAN_DIR", ".sdkman/candidates/maven/3/bin/mvn", ".sdkman/candidates/maven/3/conf/settings.xml"},
		{"Gradle of SDKMAN", ".sdkman/candidates/java/21/bin/java", "SDKMAN_DIR", ".sdkman/candidates/gradle/8/bin/gradle", ".sdkman/candidates/gradle/8/init.d/x.gradle"},
		{"Rust of asdf", ".asdf/shims/cargo", "ASDF_DATA_DIR", ".asdf/installs/rust/1.80/bin/cargo", ".asdf/installs/rust/1.80/credentials.toml"},
		{"Volta", ".volta/bin/node", "VOLTA_HOME", ".volta/tools/image/node/20.1.0/bin/node", ".volta/tools/image/node/20.1.0/etc/npmrc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			folder, rest, _ := strings.Cut(tt.data, "/")
			if tt.name == "mise" {
				folder, rest = ".local/share/mise", strings.TrimPrefix(tt.data, ".local/share/mise/")
			}
			p.put(tt.data, "it works\n")
			shim, closed := p.put(tt.shim, "#!/bin/sh\nexec cat \"$"+tt.variable+"/"+rest+"\" \"$@\"\n"), p.put(tt.closed, secret)
			if got := p.program(shim); got.code != 0 || got.text != "it works" {
				t.Errorf("in %s: %+v", folder, got)
			}
			if got := p.program(shim, closed); got.code == 0 || !strings.Contains(got.text, "Permission denied") {
				t.Errorf("%s is open: %+v", closed, got)
			}
		})
	}
}

// A run's home has the crates of this machine and the user's choice of versions, which it
// may change for itself alone, and none of the user's variables.
func TestHomeIsFilled(t *testing.T) {
	required(t)
	p := newPlace(t)
	large := strings.Repeat("x", maxSeed+1)
	crate := p.put(".cargo/registry/cache/index.example-1/a-1.0.0.crate", large)
	index := p.put(".cargo/registry/index/index.example-1/config.json", "{}")
	p.put(".cargo/config.toml", secret)
	p.put(".tool-versions", "nodejs 20\n")
	p.put(".config/mise/config.toml", "[env]\nTOKEN = '"+secret+"'\n[tools]\nnode = '20'\n[settings]\nx = '"+secret+"'\n")
	p.must(os.Symlink(crate, filepath.Join(p.outside, ".asdfrc"))) // too large, and no file of its own
	got := p.program("/bin/sh", "-c", `cd "$HOME" && set -e
		test $(wc -c < .cargo/registry/cache/index.example-1/a-1.0.0.crate) = 4097
		echo new > .cargo/registry/cache/index.example-1/b.crate; echo new > .cargo/registry/index/index.example-1/config.json
		mkdir .cargo/registry/src; cat .tool-versions .config/mise/config.toml; echo more >> .tool-versions
		test ! -e .cargo/config.toml; test ! -e .asdfrc
		if echo x 2>/dev/null >> .cargo/registry/cache/index.example-1/a-1.0.0.crate; then echo the machine\'s crate was changed; fi`)
	if want := "nodejs 20\n[tools]\nnode = '20'"; got.code != 0 || got.text != want {
		t.Errorf("%+v, want %q", got, want)
	}
	for file, want := range map[string]string{crate: large, index: "{}", p.path("outside/.tool-versions"): "nodejs 20\n"} {
		if b, err := os.ReadFile(file); err != nil || string(b) != want {
			t.Errorf("%s is %d bytes now, %v", file, len(b), err)
		}
	}
}
