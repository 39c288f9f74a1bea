package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is denied below the home is named with the setting that opens it, and nothing that
// somebody should not open, whatever an output says.
func TestExplainDenial(t *testing.T) {
	dir := resolvePath(t.TempDir())
	home := filepath.Join(dir, "home")
	for _, name := range []string{
		".foo/data", "src/a b/x", "src/[x]/y", ".ssh/id", ".gem/ruby/x", ".config/tool/x", ".local/share/app/x", "u/pending/x", "keys/one", ".mozilla/x", "../other/x", ".aws/credentials", "quote'd/x",
	} {
		if err := os.MkdirAll(filepath.Join(home, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link-to-ssh": ".ssh", "link-to-home": ".", "link-out": "../other", "link-to-foo": ".foo"} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cell{o: Options{Environ: []string{"HOME=" + home, "UWF_HOME=" + home + "/u", "KUBECONFIG=" + home + "/keys/one"}}, policy: policy{UID: keep}}
	inner := []string{EnvClosedHome + "=" + c.o.listClosedHome()}
	for _, tt := range []struct {
		name, output, want string // of ~, the home
	}{
		{"cat", "cat: ~/.foo/data: Permission denied\n", "~/.foo/data"},
		{"Go", "open ~/.foo/data: permission denied", "~/.foo/data"},
		{"Node.js", "Error: EACCES: permission denied, open '~/.foo/data'", "~/.foo/data"},
		{"Python", "PermissionError: [Errno 13] Permission denied: '~/.foo'", "~/.foo"},
		{"macOS", "cat: ~/.foo: Operation not permitted", "~/.foo"},
		{"the second line", "begin\ncat: ~/.foo: Permission denied\n", "~/.foo"},
		{"the second path", "~/.ssh and ~/.foo: Permission denied", "~/.foo"},
		{"at a sentence's end", "Permission denied: ~/.foo.", "~/.foo"},
		{"a link to it", "cat: ~/link-to-foo/data: Permission denied", "~/.foo/data"},
		{"a program's data", "cat: ~/.local/share/app/x: Permission denied", "~/.local/share/app/x"},
		{"another failure", "cat: ~/.foo: Is a directory", ""},
		{"a path on another line", "~/.foo\nPermission denied", ""},
		{"nothing that is there", "cat: ~/.bar: Permission denied", ""},
		{"the home", "ls: ~/: Permission denied", ""},
		{"the home by dots", "ls: ~/.foo/..: Permission denied", ""},
		{"the home by a link", "ls: ~/link-to-home: Permission denied", ""},
		{"the root", "ls: / ~/../..: Permission denied", ""},
		{"a neighbour", "ls: ~/../other/x: Permission denied", ""},
		{"a neighbour by a link", "ls: ~/link-out/x: Permission denied", ""},
		{"a name that begins like the home", "ls: ~2/.foo: Permission denied", ""},
		{"keys", "cat: ~/.ssh/id: Permission denied", ""},
		{"keys by a link", "cat: ~/link-to-ssh/id: Permission denied", ""},
		{"keys by dots", "cat: ~/.foo/../.ssh/id: Permission denied", ""},
		{"what holds credentials", "cat: ~/.gem: Permission denied", ""},
		{"beside credentials", "cat: ~/.gem/ruby/x: Permission denied", "~/.gem/ruby/x"},
		{"clouds", "cat: ~/.aws: Permission denied", ""},
		{"browsers", "cat: ~/.mozilla/x: Permission denied", ""},
		{"settings", "cat: ~/.config/tool/x: Permission denied", ""},
		{"folders of many programs", "ls: ~/.local/share: Permission denied", ""},
		{"uwf's own elsewhere", "ls: ~/u/pending/x: Permission denied", ""},
		{"credentials elsewhere", "ls: ~/keys/one: Permission denied", ""},
		{"their folder", "ls: ~/keys: Permission denied", ""},
		{"a name with a space", "cat: ~/src/a b/x: Permission denied", ""},
		{"a name that YAML reads otherwise", "cat: ~/src/[x]/y: Permission denied", ""},
		{"a name with a quote", "cat: ~/quote'd/x: Permission denied", ""},
	} {
		output, want := strings.ReplaceAll(tt.output, "~", home), ""
		if tt.want != "" {
			place := strings.ReplaceAll(tt.want, "~", home)
			want = "[the sandbox closes " + place + ": confine.read: [" + place + "] in ~/.uwf/config.yaml opens it]"
		}
		if got := c.ExplainDenial(output); got != want {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
		if got := ExplainOwnDenial(inner, output); got != want {
			t.Errorf("%s, inside: %q, want %q", tt.name, got, want)
		}
	}
	for output, want := range map[string]string{
		"  sl = self._semlock = _multiprocessing.SemLock(\nPermissionError: [Errno 13] Permission denied\n": "confine.write: [/dev/shm]",
		"java.nio.file.AccessDeniedException: /tmp/x123\n":                                                  "use the folder that TMPDIR names",
		"mkdir: cannot create directory '/var/tmp/x': Permission denied":                                    "use the folder that TMPDIR names",
		"cat: /tmp/uwf-agent-1/home/x: Permission denied":                                                   "",
		"cat: /srv/tmp/x: Permission denied":                                                                "",
		"cat: /dev/shm/job-1/file: Permission denied":                                                       "",
		"cat: /dev/shm/job-1: Permission denied":                                                            "confine.write: [/dev/shm]",
		"import SemLock\nok":                                                                                "",
	} {
		if got := c.ExplainDenial(output); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", output, got, want)
		}
	}
	closed := &Cell{policy: policy{UID: keep, Gateway: true}}
	for _, output := range []string{"dial udp 127.0.0.1:53: socket: permission denied", "Error: listen EACCES: permission denied 127.0.0.1"} {
		if got := closed.ExplainDenial(output); got != "[confine.network: gateway closes this part of the network]" {
			t.Errorf("%s: %q", output, got)
		}
	}
	const output = "cat: /etc/passwd: Permission denied"
	for _, home := range []string{"", "/", "relative"} {
		o := Options{Environ: []string{"HOME=" + home}}
		if got := (&Cell{o: o, policy: policy{UID: keep}}).ExplainDenial(output) + ExplainOwnDenial([]string{EnvClosedHome + "=" + o.listClosedHome()}, output); got != "" {
			t.Errorf("HOME=%s: %q", home, got)
		}
	}
	if got := ExplainOwnDenial(nil, "cat: "+home+"/.foo: Permission denied"); got != "" {
		t.Errorf("unconfined: %q", got)
	}
}

// TestResolveAll: places are resolved as each would be by itself.
func TestResolveAll(t *testing.T) {
	dir := resolvePath(t.TempDir())
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "real/sub"), 0o700), os.WriteFile(filepath.Join(dir, "real/sub/file"), nil, 0o600),
		os.Symlink("real", filepath.Join(dir, "link")), os.Symlink("../real/sub", filepath.Join(dir, "real/again")),
		os.Symlink("round", filepath.Join(dir, "round")), os.Symlink("nowhere", filepath.Join(dir, "broken")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"", "real", "link", "link/sub/file", "link/again/file", "link/again/missing", "real/sub/../sub/file", "real/sub/file/below",
		"round", "round/x", "broken", "broken/x", "missing/x/y", "link/missing", "../" + filepath.Base(dir) + "/link/sub",
	} {
		place := dir + "/" + name
		if got, want := resolveAll([]string{dir + "/link/again", place, place}), resolvePath(place); !slices.Contains(got, want) || len(got) > 2 {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := resolveAll([]string{"/", "relative", ""}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
