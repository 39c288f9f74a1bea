package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A toolchain's variable opens what it names, but for credentials, the user's home and
// folders of many programs, however it comes to name them.
func TestToolVariablesOpenNoCredentials(t *testing.T) {
	required(t)
	for _, tt := range []struct {
		name    string
		environ string   // words of NAME=value; ~ is the home
		closed  []string // below the home
		open    string   // the same, if anything is
	}{
		{"gems", "GEM_HOME=~/.gem", []string{".gem/credentials"}, ".gem/ruby/3.3/gems/a.rb"},
		{"gems by XDG", "GEM_PATH=~/.local/share/gem", []string{".local/share/gem/credentials"}, ".local/share/gem/ruby/a.rb"},
		{"a bundle", "BUNDLE_PATH=~/.bundle", []string{".bundle/config"}, ".bundle/cache/compact"},
		{"a bundle of another user's home", "BUNDLE_PATH=~/b BUNDLE_USER_HOME=~/b", []string{"b/config"}, "b/cache/compact"},
		{"Maven", "MAVEN_HOME=~/.m2", []string{".m2/settings.xml", ".m2/settings-security.xml", ".m2/settings-security4.xml"}, ".m2/wrapper/dists/mvn"},
		{"Maven elsewhere", "MAVEN_HOME=~/tools/mvn", []string{"tools/mvn/settings.xml"}, "tools/mvn/conf/settings.xml"},
		{"Gradle", "GRADLE_HOME=~/.gradle", []string{".gradle/gradle.properties", ".gradle/init.d/login.gradle"}, ".gradle/wrapper/dists/gradle"},
		{"Gradle elsewhere", "GRADLE_HOME=~/g GRADLE_USER_HOME=~/g", []string{"g/init.d/login.gradle"}, "g/wrapper/dists/gradle"},
		{"Cargo", "PYTHONPATH=~/.cargo", []string{".cargo/credentials", ".cargo/credentials.toml", ".cargo/config.toml"}, ".cargo/bin/cargo"},
		{"Cargo elsewhere, by PATH", "CARGO_HOME=~/a/b/c PATH=~/a/b/c/bin", []string{"a/b/c/credentials.toml", "a/b/c/config.toml"}, "a/b/c/bin/cargo"},
		{"npm, by PATH", "PATH=~/a/b/npm/bin", []string{"a/b/npm/etc/npmrc"}, "a/b/npm/lib/node_modules/x/index.js"},
		{"a file of npm elsewhere", "PNPM_HOME=~/p NPM_CONFIG_USERCONFIG=~/p/rc", []string{"p/rc"}, "p/store/x"},
		{"Python", "VIRTUAL_ENV=~/venv", []string{"venv/pip.conf"}, "venv/lib/python3/site-packages/x.py"},
		{"Conda", "CONDA_PREFIX=~/conda", []string{"conda/.condarc"}, "conda/lib/x.so"},
		{"Android", "ANDROID_HOME=~/.android", []string{".android/adbkey", ".android/debug.keystore"}, ".android/avd/x.ini"},
		{".NET", "DOTNET_ROOT=~/.nuget", []string{".nuget/NuGet/NuGet.Config"}, ".nuget/packages/x.dll"},
		{"a package with a telling name", "PYTHONPATH=~/src", nil, "src/credentials/__init__.py"},
		{"the home", "PYTHONPATH=~", []string{"notes.txt"}, ""},
		{"the home with a slash", "GEM_HOME=~/", []string{"notes.txt"}, ""},
		{"the home's parent", "GEM_HOME=~/..", []string{"notes.txt"}, ""},
		{"the home by ..", "GEM_HOME=~/.gem/..", []string{"notes.txt"}, ""},
		{"the root folder", "GEM_HOME=/", []string{"notes.txt"}, ""},
		{"the home on PATH", "PATH=~", []string{"notes.txt"}, ""},
		{"keys", "GEM_HOME=~/.ssh", []string{".ssh/id_ed25519"}, ""},
		{"one key", "NODE_EXTRA_CA_CERTS=~/.ssh/id_ed25519", []string{".ssh/id_ed25519"}, ""},
		{"keys on PATH", "PATH=~/.ssh/a/b/bin", []string{".ssh/a/b/bin/key", ".ssh/a/b/key"}, ""},
		{"keys in a list", "LD_LIBRARY_PATH=/none:~/.gnupg:~/lib", []string{".gnupg/secring.gpg"}, "lib/x.so"},
		{"clouds", "RUNNER_TOOL_CACHE=~/.aws", []string{".aws/credentials"}, ""},
		{"clouds elsewhere", "JAVA_HOME=~/jdk AWS_SHARED_CREDENTIALS_FILE=~/jdk/aws KUBECONFIG=~/jdk/k1:~/jdk/k2", []string{"jdk/aws", "jdk/k1", "jdk/k2"}, "jdk/lib/x"},
		{"engines", "JAVA_HOME=~/.docker", []string{".docker/config.json"}, ""},
		{"a file of many logins", "SSL_CERT_FILE=~/.netrc", []string{".netrc"}, ""},
		{"git's credentials", "REQUESTS_CA_BUNDLE=~/.git-credentials", []string{".git-credentials"}, ""},
		{"settings of all programs", "NVM_DIR=~/.config", []string{".config/gh/hosts.yml", ".config/other/token"}, ""},
		{"settings of one program", "NVM_DIR=~/.config/nvm", []string{".config/gh/hosts.yml"}, ".config/nvm/versions/node"},
		{"settings by XDG", "NVM_DIR=~/x/gcloud XDG_CONFIG_HOME=~/x", []string{"x/gcloud/token"}, ""},
		{"data of all programs", "PYTHONPATH=~/.local/share", []string{".local/share/keyrings/login.keyring", ".local/share/other/token"}, ""},
		{"all of .local", "PYTHONPATH=~/.local", []string{".local/share/keyrings/login.keyring", ".local/lib/x"}, ""},
		{"uwf's own", "GEM_HOME=~/.uwf", []string{".uwf/.env"}, ""},
		{"a folder of uwf's own", "GEM_HOME=~/.uwf/pending/x", []string{".uwf/pending/x/step"}, ""},
		{"steps that are not pushed yet", "UWF_HOME=~/u GEM_HOME=~/u/pending/0123456789abcdef", []string{"u/pending/0123456789abcdef/01JD0000000000000000000001"}, ""},
		{"uwf's own elsewhere", "UWF_HOME=~/u GEM_HOME=~/u/pending", []string{"u/pending/step"}, ""},
		{"the job's temporary files", "RUNNER_TEMP=~/temp GITHUB_ENV=~/temp/_runner/env PYTHONPATH=~/temp GEM_HOME=~/temp/_runner", []string{"temp/token", "temp/_runner/env"}, "temp/_runner/tool"},
		{"a link to keys", "GEM_HOME=~/link-to-ssh", []string{".ssh/id_ed25519"}, ""},
		{"a link to a file", "SSL_CERT_FILE=~/link-to-npmrc", []string{".npmrc"}, ""},
		{"a link in a folder", "GEM_HOME=~/links", []string{".ssh/id_ed25519"}, "links/plain"},
		{"credentials that are links", "GEM_PATH=~/dotfiles", []string{"dotfiles/pypirc"}, "dotfiles/vimrc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			home := p.outside
			put := func(name string) string {
				p.must(os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
				return p.write(filepath.Join("outside", name), secret)
			}
			for _, name := range []string{".ssh/id_ed25519", ".npmrc", "links/plain", "dotfiles/pypirc"} {
				put(name)
			}
			for link, to := range map[string]string{"link-to-ssh": ".ssh", "link-to-npmrc": ".npmrc", "links/ssh": "../.ssh", ".pypirc": "dotfiles/pypirc"} {
				p.must(os.Symlink(to, filepath.Join(home, link)))
			}
			var list [][]string
			for _, name := range tt.closed {
				list = append(list, []string{"read", put(name)})
			}
			if tt.open != "" {
				list = append(list, []string{"read", put(tt.open)})
			}
			p.options.Environ = append(p.options.Environ, "HOME="+home)
			for _, word := range strings.Fields(strings.ReplaceAll(tt.environ, "~", home)) {
				if path, ok := strings.CutPrefix(word, "PATH="); ok {
					word = "PATH=" + path + ":/usr/bin:/bin"
				}
				p.options.Environ = append(p.options.Environ, word)
			}
			got, _ := p.many(p.confined, list)
			if tt.open != "" {
				if last := got[len(got)-1]; last != "" {
					t.Errorf("%s can't be read: %s", tt.open, last)
				}
				got = got[:len(got)-1]
			}
			for i, refused := range got {
				if refused == "" {
					t.Errorf("an agent read %s", tt.closed[i])
				}
			}
		})
	}
}

// A file of settings without a secret is open, and one with a single other line is not.
func TestSettingsWithoutSecretsAreOpen(t *testing.T) {
	dir := resolvePath(t.TempDir())
	file := filepath.Join(dir, "etc", "npmrc")
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=/nowhere", "PATH=" + filepath.Join(dir, "bin")}

	for text, open := range map[string]bool{
		"": true, "fund=false\n\naudit = true\n": true, "[global]\nindex = https://npm.example.com:8080/\r\n": true, "cafile=" + file + "\n": true,
		"cafile=/no/such/file": false, "fund=false\n_auth=true": false, "//npm.example.com/:_authToken=abc": false, "_password=true": false,
		"registry=https://user:pass@npm.example.com/": false, "registry=https://npm.example.com/t0ken/": false, "# _auth=abc": false, "otp=123456": false, "token=abc": false,
		"PASSWORD=/": false, "a=true=abc": false, "<password>abc</password>": false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(readablePlaces(Options{Environ: environ}), func(p string) bool { return isWithin(file, p) })
		if got != open {
			t.Errorf("open is %v for %q", got, text)
		}
	}
}

// Each credential stays closed where a variable names it or the folder that it lies in,
// in a home that is a symlink, too, and before it is there.
func TestEachCredentialStaysClosed(t *testing.T) {
	dir := resolvePath(t.TempDir())
	home, link := filepath.Join(dir, "home"), filepath.Join(dir, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range credentialPlaces {
		place := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, there := range []bool{false, true} {
			if there {
				if err := os.MkdirAll(filepath.Join(place, "in it"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var named []string
			for _, home := range []string{home, link} {
				place := filepath.Join(home, name)
				named = append(named, place, filepath.Dir(place), filepath.Join(place, "in it"))
			}
			got := readablePlaces(Options{Environ: []string{"HOME=" + link, "GEM_PATH=" + strings.Join(named, ":")}})
			if slices.ContainsFunc(got, func(p string) bool { return isWithin(place, p) || isWithin(p, place) }) {
				t.Errorf("%s is open (there: %v)", name, there)
			}
		}
	}
}
