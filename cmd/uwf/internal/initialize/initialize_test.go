package initialize

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/text"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is a repository with a commit, and a home of its own.
type world struct {
	t         *testing.T
	dir, home string
	env       []string
	ask       func(context.Context, []setup.Question) error
	out, errs bytes.Buffer
	code      int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	testmode.NeedGit(t)
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "repo"), home: t.TempDir()}
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "UWF_LOG=off"}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.git("init", "-q", "-b", "main")
	w.git("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", "first")
	return w
}

func (w *world) git(args ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = w.dir, append(w.env, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func (w *world) runIn(dir string, flags ...string) {
	w.t.Helper()
	w.out.Reset()
	w.errs.Reset()
	f := app.NewAt(dir, w.env, app.IO{In: strings.NewReader(""), Out: &w.out, Err: &w.errs})
	f.Now = time.Now
	cmd := NewCmdInit(f, func(ctx context.Context, o *Options) error {
		o.Ask = w.ask
		return initRun(ctx, o)
	})
	cmd.SetArgs(flags)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(w.t.Context())
	if w.code = app.ExitCodeOf(err); err != nil {
		w.errs.WriteString(app.Message(err))
	}
}

func (w *world) run(flags ...string) {
	w.t.Helper()
	w.runIn(w.dir, flags...)
}

// must runs and wants success.
func (w *world) must(flags ...string) {
	w.t.Helper()
	if w.run(flags...); w.code != 0 {
		w.t.Fatalf("init %v: exit code %d: %s", flags, w.code, w.errs.String())
	}
}

// printed is what the last run printed, as JSON and as people see it.
func (w *world) printed() (r result, forPeople string) {
	w.t.Helper()
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	r.writeText(output.Printer{Out: &b}.Text())
	return r, b.String()
}

// refuses runs, and wants exit code 2 with words, and nothing written.
func (w *world) refuses(words string, flags ...string) {
	w.t.Helper()
	before := w.tree()
	w.run(flags...)
	if w.code != 2 || !strings.Contains(w.errs.String(), words) {
		w.t.Errorf("init %v: exit code %d, want 2 and %q in: %s", flags, w.code, words, w.errs.String())
	}
	if after := w.tree(); !slices.Equal(before, after) {
		w.t.Errorf("init %v changed the repository: %v, before: %v", flags, after, before)
	}
}

// tree are the files outside of .git, with their content.
func (w *world) tree() []string {
	w.t.Helper()
	var out []string
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		b, err := os.ReadFile(path)
		if d.Type()&os.ModeSymlink != 0 {
			b, err = nil, nil
		}
		out = append(out, path+"="+string(b))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

const workflowPath = ".github/workflows/uwf.yml"

// TestVariants keeps every kind of workflow file that is written as a golden file:
// the linter of workflow files checks these.
func TestVariants(t *testing.T) {
	for name, flags := range map[string][]string{
		"openai":                   {"--provider", "openai"},
		"anthropic":                {"--provider", "anthropic", "--secret", "CLAUDE_KEY"},
		"openrouter":               {"--provider", "openrouter"},
		"github-models":            {"--provider", "github-models"},
		"custom":                   {"--provider", "custom", "--base-url", "https://models.example.com/v1", "--model", "m"},
		"host":                     {"--provider", "openai", "--host"},
		"two-jobs":                 {"--provider", "openai", "--two-jobs"},
		"reusable":                 {"--provider", "openai", "--secret", "ACME_KEY", "--reusable", "acme/.github/.github/workflows/uwf.yml@main"},
		"host-two-jobs":            {"--provider", "openai", "--two-jobs", "--host"},
		"two-jobs-github-models":   {"--provider", "github-models", "--two-jobs"},
		"gitea":                    {"--provider", "openai", "--gitea"},
		"gitea-allow":              {"--provider", "openai", "--gitea", "--allow", "alice,bob"},
		"bots":                     {"--provider", "openai", "--allow", "renovate[bot]"},
		"claude-code":              {"--agent", "claude-code"},
		"codex":                    {"--agent", "codex"},
		"gemini-cli":               {"--agent", "gemini-cli"},
		"copilot":                  {"--agent", "copilot", "--provider", "openrouter"},
		"opencode":                 {"--agent", "opencode", "--provider", "openai", "--gitea"},
		"qwen-code":                {"--agent", "qwen-code", "--provider", "custom", "--base-url", "https://models.example.com/v1", "--model", "qwen3"},
		"two-jobs-claude-code":     {"--agent", "claude-code", "--two-jobs"},
		"gitea-two-jobs-anthropic": {"--provider", "anthropic", "--two-jobs", "--gitea", "--allow", "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(append(flags, "--yes")...)
			got, golden := w.read(workflowPath), filepath.Join("testdata", name+".yml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s is not what is written (%v); look at it, then write it anew with -update", golden, err)
			}
			if problems := config.Check("f", []byte(w.read(".uwf/config.yaml"))); len(problems) > 0 {
				t.Error(problems)
			}
			if s := w.out.String(); strings.Contains(s, `"missing"`) {
				t.Errorf("its own check finds something missing: %s", s)
			}
			w.must(append(flags, "--yes")...)
			if n := strings.Count(w.out.String(), `"unchanged"`); n != 3 {
				t.Errorf("the second time %d files are unchanged, want 3: %s", n, w.out.String())
			}
		})
	}
}

// Where the tests need a toolchain, agents get the runner's, unless somebody says no.
func TestToolchains(t *testing.T) {
	const host = "united-workforce/uwf/.github/actions/host@"
	for _, tt := range []struct {
		file  string
		flags []string
		host  bool
	}{
		{"go.mod", nil, true},
		{"package.json", nil, true},
		{"go.mod", []string{"--container"}, false},
		{"notes.txt", nil, false},
		{"notes.txt", []string{"--host"}, true},
	} {
		w := newWorld(t)
		w.put(tt.file, "x\n")
		w.must(append(tt.flags, "--provider", "openai", "--yes")...)
		if got := strings.Contains(w.read(workflowPath), host); got != tt.host {
			t.Errorf("%s %v: on the runner: %v", tt.file, tt.flags, got)
		}
		if said := strings.Contains(w.out.String(), "because "+tt.file+" is here"); said != (tt.host && tt.flags == nil) {
			t.Errorf("%s %v: %s", tt.file, tt.flags, w.out.String())
		}
	}
}

// A toolchain below the top is found as well, in what git would keep; those nearest to the top
// decide, and the others are named.
func TestToolchainsBelow(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // empty: none is found
		tests string // the command that is advised; empty: none is
	}{
		"at the top alone":   {map[string]string{"go.mod": "", "web/package.json": "{}"}, "because go.mod is here, and so is web/package.json (", ""},
		"one below":          {map[string]string{"services/api/go.mod": ""}, "because services/api/go.mod is here (", "(cd services/api && go test ./...)"},
		"the nearest first":  {map[string]string{"a/b/go.mod": "", "z/Cargo.toml": ""}, "because z/Cargo.toml is here, and so is a/b/go.mod (", "(cd z && cargo test) && (cd a/b && go test ./...)"},
		"several":            {map[string]string{"a/go.mod": "", "b/pom.xml": "", "c/package.json": `{"scripts":{"test":"jest"}}`, "d/Gemfile": "", "d/mix.exs": ""}, "because a/go.mod is here, and so is b/pom.xml, c/package.json, and 2 more (", "(cd a && go test ./...) && (cd b && mvn -B -q test) && (cd c && npm run test) && (cd d && mix test)"},
		"a strange name":     {map[string]string{"it's/go.mod": ""}, "because it's/go.mod is here (", `(cd 'it'\''s' && go test ./...)`},
		"no tests known":     {map[string]string{"a/Gemfile": ""}, "because a/Gemfile is here (", ""},
		"as deep as it goes": {map[string]string{"1/2/3/4/go.mod": ""}, "because 1/2/3/4/go.mod is here (", "(cd 1/2/3/4 && go test ./...)"},
		"too deep":           {map[string]string{"1/2/3/4/5/go.mod": ""}, "", ""},
		"others' code":       {map[string]string{"node_modules/x/package.json": "{}", "a/vendor/y/go.mod": "", "third_party/z/go.mod": "", "testdata/go.mod": "", ".cache/go.mod": ""}, "", ""},
		"ignored":            {map[string]string{".gitignore": "out/\n", "out/go.mod": ""}, "", ""},
		"no such name":       {map[string]string{"a/go.mod.bak": "", "a/xgo.mod": ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for file, text := range tt.files {
				w.put(file, text)
			}
			w.must("--provider", "openai", "--yes")
			_, out := w.printed()
			if !strings.Contains(out, tt.want) || strings.Contains(out, "because") != (tt.want != "") {
				t.Errorf("want %q in %s", tt.want, out)
			}
			if advised := "uwf config set --repo checks.test " + text.ShellWord(tt.tests) + "\n"; strings.Contains(out, "checks.test") != (tt.tests != "") || tt.tests != "" && !strings.Contains(out, advised) {
				t.Errorf("want %q in %s", advised, out)
			}
		})
	}
	w := newWorld(t)
	w.put("a/go.mod", "")
	w.git("add", "a/go.mod")
	if err := os.RemoveAll(filepath.Join(w.dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(w.dir, "b", "go.mod")); err != nil {
		t.Fatal(err)
	}
	w.put(".uwf/config.yaml", "checks: {test: make}\n")
	if w.must("--provider", "openai", "--force"); strings.Contains(w.out.String(), "because") {
		t.Errorf("a file that was deleted, or a link, decides: %s", w.out.String())
	}
	w.put("b/pom.xml", "")
	if w.must("--provider", "openai", "--force"); strings.Contains(w.out.String(), "checks.test") {
		t.Errorf("a check that is set is advised: %s", w.out.String())
	}
}

// On a forge that uwf has no jobs on, what works there is said, and nothing is written, advised
// or linked to that does not.
func TestOtherForges(t *testing.T) {
	for remote, name := range map[string]string{
		"https://gitlab.com/acme/parser.git": "GitLab", "git@gitlab.example.com:group/sub/parser.git": "GitLab", "ssh://git@my-gitlab.example.com:2222/a/b": "GitLab",
		"git@bitbucket.org:acme/parser.git": "Bitbucket", "https://bitbucket.example.com/scm/acme/parser.git": "Bitbucket",
		"https://dev.azure.com/acme/parser/_git/parser": "Azure DevOps", "https://acme.visualstudio.com/parser/_git/parser": "Azure DevOps",
	} {
		w := newWorld(t)
		w.git("remote", "add", "origin", remote)
		w.put("go.mod", "module x\n")
		for _, flag := range []string{"--two-jobs", "--host", "--container", "--secret=KEY", "--allow=alice", "--reusable=acme/.github/.github/workflows/uwf.yml@main"} {
			w.refuses("origin is on "+name+", where uwf has no jobs: leave --secret, --allow, --two-jobs, --host, --container and --reusable out", "--provider", "openai", flag)
		}
		w.must("--provider", "openai")
		errs := w.errs.String()
		r, out := w.printed()
		if _, err := os.Stat(filepath.Join(w.dir, ".github")); err == nil || !strings.Contains(w.read(".uwf/config.yaml"), "remote: origin") {
			t.Errorf("%s: what it wrote is not for %s: %s", remote, name, out)
		}
		if !strings.Contains(errs, "origin is on "+name+": threads run on people's machines (uwf run)") || !strings.Contains(errs, "no jobs, no comments and no uwf thread pr") {
			t.Errorf("%s: it says %s", remote, errs)
		}
		for _, no := range []string{"https://", "gh ", "secret", "label", "GitHub", "missing", "uwf.yml"} {
			if strings.Contains(out, no) {
				t.Errorf("%s: it says %q: %s", remote, no, out)
			}
		}
		for i, do := range []string{"commit the files", "bring them to the default branch", "give this machine the provider's key", "run a thread"} {
			if !strings.Contains(out, fmt.Sprintf("\n%2d. %s", i+1, do)) {
				t.Errorf("%s: step %d is not %q: %s", remote, i+1, do, out)
			}
		}
		if want := strings.ToLower(strings.ReplaceAll(name, " ", "-")); string(r.Forge) != want || len(r.Files) != 2 {
			t.Errorf("%s: %q, %d files; want %q", remote, r.Forge, len(r.Files), want)
		}
		w.env = append(w.env, "OPENAI_API_KEY=not-a-real-key")
		w.must("--provider", "openai")
		if _, out := w.printed(); !strings.Contains(out, "3. ✓ give this machine the provider's key") {
			t.Errorf("%s: the key is there: %s", remote, out)
		}
		w.must("--provider", "openai", "--gitea=false", "--yes", "--force") // a mirror of what is on GitHub
		w.read(workflowPath)
	}
}

// What is done is ticked: by the checkout, and by the forge where there is a token for it.
func TestDone(t *testing.T) {
	w := newWorld(t)
	steps := func() string {
		w.must("--provider", "openai", "--keep")
		r, _ := w.printed()
		var done []string
		for _, n := range r.Next {
			if n.Done {
				done = append(done, n.Do[:16])
			}
		}
		return strings.Join(done, ", ")
	}
	expect := func(want string) {
		t.Helper()
		if got := steps(); got != want {
			t.Errorf("done is %q, want %q", got, want)
		}
	}
	secrets, pulls, active := `{"secrets":[]}`, "false", "disabled_manually"
	forge := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"":                              `{"full_name":"octo/demo","default_branch":"main"}`,
			"/actions/secrets":              secrets,
			"/actions/permissions/workflow": `{"can_approve_pull_request_reviews":` + pulls + `}`,
			"/actions/workflows":            `{"workflows":[{"path":".github/workflows/uwf.yml","state":"` + active + `"}]}`,
		}
		text := answers[strings.TrimPrefix(r.URL.Path, "/api/v3/repos/octo/demo")]
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if text == "" {
			rw.WriteHeader(http.StatusNotFound)
			text = `{"message":"Not Found"}`
		}
		_, _ = rw.Write([]byte(text))
	}))
	defer forge.Close()
	w.git("remote", "add", "origin", forge.URL+"/octo/demo.git")
	expect("")
	w.git("add", "-A")
	w.git("-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "uwf")
	expect("commit the files")
	w.git("update-ref", "refs/remotes/origin/main", "HEAD")
	w.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	expect("commit the files, bring them to th")
	_, s := w.printed()
	if !strings.Contains(s, "\n 2. ✓ commit the files\n 3. ✓ bring them") || strings.Contains(s, "git add") {
		t.Errorf("it is not ticked: %s", s)
	}
	w.must("--provider", "anthropic", "--force")
	expect("") // other files than those that are committed
	w.git("checkout", "-q", "--", ".")
	w.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
	w.git("checkout", "-q", "-b", "try")
	steps()
	if _, s := w.printed(); !strings.Contains(s, "bring them to the default branch, main, by a pull request of try") {
		t.Errorf("the branch is another one: %s", s)
	}
	w.env = append(w.env, "GITHUB_TOKEN=t", "GITHUB_SERVER_URL="+forge.URL, "GITHUB_API_URL="+forge.URL+"/api/v3")
	expect("commit the files") // the forge says no of all else
	secrets, pulls, active = `{"secrets":[{"name":"OPENAI_API_KEY"}]}`, "true", "active"
	expect("make a secret OP, commit the files, bring them to th, let jobs open pu")
}

func TestNothingIsOverwrittenUnasked(t *testing.T) {
	w := newWorld(t)
	w.put(workflowPath, "name: mine\n")
	w.refuses("overwrite with --force, or leave as it is with --keep", "--provider", "openai", "--yes")
	if s := w.errs.String(); !strings.Contains(s, "- name: mine") || !strings.Contains(s, "+ name: uwf") {
		t.Errorf("what differs is not shown: %s", s)
	}
	w.must("--provider", "openai", "--keep")
	if w.read(workflowPath) != "name: mine\n" || !strings.Contains(w.out.String(), `"kept"`) {
		t.Error("--keep changed a file")
	}
	w.must("--provider", "openai", "--force")
	if !strings.Contains(w.read(workflowPath), "united-workforce/uwf@") || !strings.Contains(w.out.String(), `"overwritten"`) {
		t.Error("--force did not write it")
	}
}

// TestInstallIsWritten: what a lock file names is installed in jobs, and init says so; settings that
// say how a workspace is prepared stay.
func TestInstallIsWritten(t *testing.T) {
	w := newWorld(t)
	w.put("pnpm-lock.yaml", "lockfileVersion: '9.0'\n")
	w.must("--provider", "openai")
	if s := w.read(".uwf/config.yaml"); !strings.Contains(s, "\nworkspace:\n  prepare:\n    - pnpm install --frozen-lockfile --ignore-scripts\n") {
		t.Errorf("the settings are\n%s", s)
	}
	if !strings.Contains(w.out.String(), "how what pnpm-lock.yaml names is installed before agents work (workspace.prepare)") {
		t.Errorf("it says\n%s", &w.out)
	}

	w.put(".uwf/config.yaml", "workspace: {prepare: [make deps]}\n")
	w.must("--provider", "openai", "--force")
	if s := w.read(".uwf/config.yaml"); !strings.Contains(s, "make deps") || strings.Contains(s, "pnpm") {
		t.Errorf("the settings are\n%s", s)
	}
}

func TestSettingsOfOthersStay(t *testing.T) {
	w := newWorld(t)
	w.put(".uwf/config.yaml", "# ours\nlimits:\n  steps: 7 # enough\n")
	w.must("--provider", "openai", "--force")
	if s := w.read(".uwf/config.yaml"); !strings.HasPrefix(s, "# ours\nlimits:\n  steps: 7 # enough\n") || !strings.Contains(s, "remote: origin") {
		t.Errorf("settings were lost:\n%s", s)
	}
	w.put(".uwf/config.yaml", "- a list\n")
	w.refuses("it is no YAML mapping", "--provider", "openai", "--force")
}

// TestLineEnds: a checkout with CRLF is no change, and stays one when it is
// overwritten.
func TestLineEnds(t *testing.T) {
	w := newWorld(t)
	w.must("--provider", "openai")
	w.put(workflowPath, strings.ReplaceAll(w.read(workflowPath), "\n", "\r\n"))
	w.must("--provider", "openai")
	if strings.Count(w.out.String(), `"unchanged"`) != 3 {
		t.Errorf("line ends count as a change: %s", w.out.String())
	}
	w.must("--provider", "anthropic", "--force")
	if s := w.read(workflowPath); strings.Count(s, "\n") != strings.Count(s, "\r\n") || !strings.Contains(s, "provider: anthropic\r\n") {
		t.Error("line ends are mixed")
	}
}

func TestPlaces(t *testing.T) {
	t.Run("no repository", func(t *testing.T) {
		w := newWorld(t)
		w.runIn(t.TempDir(), "--provider", "openai")
		if w.code != 2 || !strings.Contains(w.errs.String(), "is in no git repository") {
			t.Errorf("%d %s", w.code, w.errs.String())
		}
	})
	t.Run("no commits", func(t *testing.T) {
		w := newWorld(t)
		if err := os.RemoveAll(filepath.Join(w.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		w.git("init", "-q")
		w.refuses("has no commits yet", "--provider", "openai")
	})
	t.Run("a folder below", func(t *testing.T) {
		w := newWorld(t)
		below := filepath.Join(w.dir, "a", "b")
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		w.runIn(below, "--provider", "openai")
		if w.code != 0 || !strings.Contains(w.errs.String(), "in the repository's top folder") {
			t.Errorf("%d %s", w.code, w.errs.String())
		}
		w.read(workflowPath)
		// What it says to type next works there.
		_, add, _ := strings.Cut(w.out.String(), `"command": "git add `)
		add, _, _ = strings.Cut(add, " && ")
		w.git(append([]string{"-C", below, "add"}, strings.Fields(add)...)...)
		cmd := exec.CommandContext(t.Context(), "git", "-C", w.dir, "diff", "--cached", "--name-only")
		cmd.Env = w.env
		if out, err := cmd.Output(); err != nil || strings.Count(string(out), "\n") != 3 {
			t.Errorf("git add %s: %s %v", add, out, err)
		}
	})
	t.Run("detached, and no remote", func(t *testing.T) {
		w := newWorld(t)
		w.git("checkout", "-q", "--detach")
		w.must("--provider", "openai")
		for _, want := range []string{"HEAD is detached", "git remote add origin URL"} {
			if !strings.Contains(w.out.String(), want) {
				t.Errorf("%q is not in %s", want, w.out.String())
			}
		}
	})
	t.Run("one remote of another name", func(t *testing.T) {
		w := newWorld(t)
		w.git("remote", "add", "upstream", "git@github.com:acme/parser.git")
		w.must("--provider", "openai")
		if !strings.Contains(w.read(".uwf/config.yaml"), "remote: upstream") || !strings.Contains(w.out.String(), "https://github.com/acme/parser/settings/secrets/actions/new") {
			t.Error(w.out.String())
		}
	})
	t.Run("gitea's own folder", func(t *testing.T) {
		w := newWorld(t)
		w.put(".gitea/workflows/ci.yml", "name: ci\non: push\njobs: {}\n")
		w.must("--provider", "openai")
		w.read(".gitea/workflows/uwf.yml")
		if s := w.out.String(); strings.Contains(s, "gh ") {
			t.Errorf("GitHub's program is of no use there: %s", s)
		}
		w.refuses("works on GitHub only", "--provider", "github-models")
	})
	t.Run("ignored", func(t *testing.T) {
		w := newWorld(t)
		w.put(".gitignore", ".uwf\n")
		w.must("--provider", "openai")
		if !strings.Contains(w.errs.String(), ".uwf/config.yaml is ignored by git") {
			t.Error(w.errs.String())
		}
	})
}

// TestHostilePlaces: what a checkout brings must not lead out of it, nor be lost.
func TestHostilePlaces(t *testing.T) {
	outside := t.TempDir()
	for name, tt := range map[string]struct {
		make  func(t *testing.T, w *world) error
		words string
	}{
		"a link out of it": {func(t *testing.T, w *world) error {
			return os.Symlink(outside, filepath.Join(w.dir, ".github"))
		}, "leads out of the repository"},
		"a link to a file": {func(t *testing.T, w *world) error {
			w.put(".github/workflows/other.yml", "x: 1\n")
			return os.Symlink("other.yml", filepath.Join(w.dir, ".github", "workflows", "uwf.yml"))
		}, "a symbolic link"},
		"a file where a folder is": {func(t *testing.T, w *world) error {
			w.put(".github", "text\n")
			return nil
		}, "a folder on the way to it is a file"},
		"a folder where the file is": {func(t *testing.T, w *world) error {
			return os.MkdirAll(filepath.Join(w.dir, ".github", "workflows", "uwf.yml"), 0o755)
		}, "(a folder)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := tt.make(t, w); err != nil {
				t.Fatal(err)
			}
			w.refuses(tt.words, "--provider", "openai", "--force")
		})
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("something was written outside: %v %v", entries, err)
	}
}

// A Gitea is recognised by asking it; whoever says what it is asks nobody, and what does
// not answer is taken for what the flag says.
func TestGiteaIsRecognised(t *testing.T) {
	asked := 0
	gitea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path == "/api/v1/version" {
			_, _ = w.Write([]byte(`{"version":"1.26.0"}`))
		}
	}))
	defer gitea.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		remote string
		flags  []string
		folder bool // Gitea's own is there
		gitea  bool
		asks   int
		note   string
	}{
		"a Gitea":              {remote: gitea.URL, gitea: true, asks: 1},
		"a GitHub Enterprise":  {remote: other.URL, note: "is taken for a GitHub Enterprise Server: on GitLab, Bitbucket and others uwf has no jobs"},
		"said so":              {remote: other.URL, flags: []string{"--gitea"}, gitea: true},
		"said otherwise":       {remote: gitea.URL, flags: []string{"--gitea=false"}},
		"no answer":            {remote: gone.URL, note: "does not say what it is (dial tcp"},
		"no answer, said so":   {remote: gone.URL, flags: []string{"--gitea"}, gitea: true},
		"its folder is there":  {remote: gone.URL, folder: true, gitea: true},
		"said not, and folder": {remote: gone.URL, folder: true, flags: []string{"--gitea=false"}},
		"no remote":            {},
		"a folder for remote":  {remote: "/srv/git"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.remote != "" {
				w.git("remote", "add", "origin", c.remote+"/octo/demo.git")
			}
			folder := ".github"
			if c.folder {
				w.put(".gitea/workflows/ci.yml", "name: ci\non: push\njobs: {}\n")
			}
			if c.folder && c.gitea {
				folder = ".gitea"
			}
			asked = 0
			w.must(append(c.flags, "--provider", "openai", "--yes")...)
			text, out := w.read(folder+"/workflows/uwf.yml"), w.out.String()
			if asked != c.asks || strings.Contains(text, "# allow: alice bob # who may") != c.gitea || strings.Contains(out, `"forge": "gitea"`) != c.gitea {
				t.Errorf("asked %d times, printed %s", asked, out)
			}
			if strings.Contains(out, "gh ") == c.gitea || strings.Contains(out, "Allow GitHub Actions") == c.gitea {
				t.Errorf("the next steps are another forge's: %s", out)
			}
			if strings.Contains(c.note, "does not say") && !strings.HasSuffix(w.errs.String(), "run it again with --gitea --force.\n") {
				t.Errorf("said %q", w.errs.String())
			}
			if (w.errs.Len() > 0) != (c.note != "") || !strings.Contains(w.errs.String(), c.note) {
				t.Errorf("said %q, want %q", w.errs.String(), c.note)
			}
		})
	}
}

// Who may start and steer on Gitea is written into the file, asked for, and named in what
// is left to do.
func TestAllow(t *testing.T) {
	w := newWorld(t)
	w.must("--provider", "openai", "--gitea", "--yes")
	if out := w.out.String(); !strings.Contains(out, "only the owner of a personal repository may start and steer") || !strings.Contains(out, "in allow: of .github/workflows/uwf.yml") || !strings.Contains(out, "settings/actions/runners") && !strings.Contains(out, "Settings, Actions, Runners") {
		t.Errorf("nobody is told who may start: %s", out)
	}
	w.must("--provider", "openai", "--gitea", "--allow", "alice", "--allow", "bob", "--force")
	if out := w.out.String(); !strings.Contains(w.read(workflowPath), "          allow: \"alice bob\" #") || !strings.Contains(out, "alice, bob, and the owner of a personal repository, may start and steer") {
		t.Errorf("they are not named: %s", out)
	}
	w.must("--provider", "openai", "--gitea", "--two-jobs", "--allow", "alice", "--force")
	if out := w.out.String(); !strings.Contains(out, "exchange the two artifact actions") {
		t.Errorf("nobody is told what does not run: %s", out)
	}
	// On a terminal.
	asked := false
	w.ask = func(_ context.Context, questions []setup.Question) error {
		for _, q := range questions {
			q.Field.Init()
			if q.Say == nil || !strings.Contains(q.Say(), "a job on Gitea can't look it up") {
				continue
			}
			asked = true
			return q.Field.RunAccessible(&bytes.Buffer{}, strings.NewReader("carol, dave\n"))
		}
		return nil
	}
	w.must("--provider", "openai", "--gitea", "--secret", "KEY", "--model", "m", "--force")
	if !asked || !strings.Contains(w.read(workflowPath), `allow: "carol dave"`) {
		t.Errorf("asked: %v\n%s", asked, w.read(workflowPath))
	}
	asked = false
	for _, flags := range [][]string{{"--gitea=false"}, {"--gitea", "--allow", "alice"}} {
		w.must(append(flags, "--provider", "openai", "--secret", "KEY", "--model", "m", "--force")...)
	}
	if asked {
		t.Error("asked although it was said, or does not matter")
	}
}

// A person who goes back may have answered what is then not asked any more.
func TestAnsweredAndNotAsked(t *testing.T) {
	for _, tt := range []struct{ provider, address, secret, not string }{
		{"1", "https://wrong.example/v1", "", "wrong.example"}, // OpenAI has its own
		{"5", "", "WRONG_KEY", "WRONG_KEY"},                    // GitHub Models need none
	} {
		w := newWorld(t)
		w.ask = func(_ context.Context, questions []setup.Question) error {
			if len(questions) == 1 { // which agent works
				return nil
			}
			for i, answer := range []string{tt.provider, tt.address, "", tt.secret} {
				if answer == "" && questions[i].Skip != nil && questions[i].Skip() {
					continue
				}
				questions[i].Field.Init()
				if err := questions[i].Field.RunAccessible(&bytes.Buffer{}, strings.NewReader(answer+"\n")); err != nil {
					return err
				}
			}
			return nil
		}
		w.must()
		if all := w.read(workflowPath) + w.read(".uwf/config.yaml"); strings.Contains(all, tt.not) {
			t.Errorf("%s was not asked any more:\n%s", tt.not, all)
		}
	}
}

func TestFlags(t *testing.T) {
	w := newWorld(t)
	const key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
	w.refuses("nobody is here to be asked: say --provider NAME (openai, anthropic")
	w.refuses("did you mean openai?", "--provider", "openia")
	w.refuses("jobs don't run on this machine", "--provider", "ollama")
	w.refuses("say --base-url ADDRESS, --model NAME", "--provider", "custom")
	w.refuses("--base-url", "--provider", "custom", "--base-url", "ftp://x", "--model", "m")
	w.refuses("never the key itself", "--provider", "openai", "--secret", key)
	if strings.Contains(w.errs.String(), key) {
		t.Error("the key is repeated")
	}
	w.refuses("never the key itself", "--provider", "openai", "--secret", "A }} ${{ secrets.B")
	w.refuses("begins with GITHUB_", "--provider", "openai", "--secret", "github_key")
	w.refuses("leave --secret out", "--provider", "github-models", "--secret", "KEY")
	const called = "acme/ci/.github/workflows/uwf.yml@v1"
	for _, place := range []string{"acme/ci", "uwf.yml@v1", "./.github/workflows/uwf.yml@v1", "acme/ci/.github/workflows/uwf.yml", "acme/ci/.github/workflows/uwf.yml@", "acme/ci/.github/workflows/a/b.yml@v1",
		"acme/ci/.github/workflows/uwf.sh@v1", called + "\n    with: {x: y}", called + " # v1", called + "${{ x }}", "a b/ci/.github/workflows/uwf.yml@v1"} {
		w.refuses("--reusable: this is no reusable workflow: write OWNER/REPO", "--provider", "openai", "--reusable", place)
	}
	w.refuses("--reusable is for GitHub", "--provider", "openai", "--gitea", "--reusable", called)
	w.refuses("--reusable hands on a key, and github-models has none", "--provider", "github-models", "--reusable", called)
	for _, name := range []string{"${{ secrets.A }}", `a"b`, "a\nb", "-a", "a b", "[bot]", "@alice", key + key} {
		w.refuses("is no name of an account", "--provider", "openai", "--allow", strings.ReplaceAll(`"`+name+`"`, `"a"b"`, `"a""b"`))
	}
}

// TestAgent: the agent is in the settings, its program is installed where agents run and nowhere
// else, and what can't work is refused.
func TestAgent(t *testing.T) {
	w := newWorld(t)
	w.must("--agent", "claude-code", "--two-jobs", "--yes")
	text, settings := w.read(workflowPath), w.read(".uwf/config.yaml")
	install := strings.Index(text, "npm install -g @anthropic-ai/claude-code@")
	if strings.Count(text, "npm install") != 1 || install < strings.Index(text, "\n  agent:") || install > strings.Index(text, "\n  commit:") {
		t.Errorf("it is not installed in the job that runs agents alone:\n%s", text)
	}
	for _, want := range []string{"defaultAgent: claude-code", "provider: anthropic", "apiKeyEnv: ANTHROPIC_API_KEY"} {
		if !strings.Contains(settings, want) {
			t.Errorf("%q is not in the settings:\n%s", want, settings)
		}
	}
	if out := w.out.String(); !strings.Contains(out, "uwf agent check claude-code") || !strings.Contains(out, `"agent": "claude-code"`) {
		t.Errorf("nobody is told of it: %s", out)
	}
	w.must("--agent", "claude-code", "--provider", "anthropic", "--host", "--force")
	w.must("--agent", "codex", "--provider", "anthropic", "--force") // the gateway translates
	if text := w.read(workflowPath); !strings.Contains(text, "@openai/codex@") || !strings.Contains(text, "provider: anthropic") {
		t.Errorf("the provider that was asked for is not taken:\n%s", text)
	}

	w = newWorld(t)
	w.refuses("did you mean claude-code?", "--agent", "claude-cod")
	w.refuses("uwf's own works where --agent is left out", "--agent", "builtin")
	w.refuses("has neither claude nor Node.js", "--agent", "claude-code", "--container")
	w.refuses("say --provider NAME", "--agent", "copilot") // it has none of its own

	// On a terminal the agent is asked for first, and its own provider then is not.
	asked := 0
	w.ask = func(_ context.Context, questions []setup.Question) error {
		for _, q := range questions {
			asked++
			q.Field.Init()
			answer := map[int]string{1: "3\n"}[asked]
			if q.Skip != nil && q.Skip() {
				continue
			}
			if err := q.Field.RunAccessible(&bytes.Buffer{}, strings.NewReader(answer+"\n")); err != nil {
				return err
			}
		}
		return nil
	}
	w.must()
	if text := w.read(workflowPath); !strings.Contains(text, "@openai/codex@") || !strings.Contains(text, "secrets.OPENAI_API_KEY") {
		t.Errorf("the third is Codex, with OpenAI:\n%s", text)
	}
}

// TestTerminal answers the questions as a person would.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.put(workflowPath, "name: mine\n")
	w.put(".uwf/workflows/solve-issue.yaml", "name: mine\n")
	asked := 0
	w.ask = func(_ context.Context, questions []setup.Question) error {
		asked++
		for _, q := range questions {
			if q.Skip != nil && q.Skip() {
				continue
			}
			answer := map[int]string{3: "y\n", 4: "n\n"}[asked]
			if answer == "" {
				answer = "\n" // uwf's own agent, the first provider, its usual model and secret
			}
			q.Field.Init()
			if err := q.Field.RunAccessible(&bytes.Buffer{}, strings.NewReader(answer)); err != nil {
				return err
			}
		}
		return nil
	}
	w.must()
	if !strings.Contains(w.read(workflowPath), "secrets.OPENAI_API_KEY") {
		t.Error("the answer yes did not overwrite")
	}
	if w.read(".uwf/workflows/solve-issue.yaml") != "name: mine\n" {
		t.Error("the answer no overwrote")
	}
	before := w.tree()
	w.ask = func(context.Context, []setup.Question) error { return setup.ErrStopped }
	w.run("--provider", "anthropic", "--secret", "A", "--model", "m", "--base-url", "https://x.example")
	if w.code == 0 || !slices.Equal(before, w.tree()) {
		t.Errorf("who stopped gets files: %d %s", w.code, w.errs.String())
	}
}

func TestChangeIsBounded(t *testing.T) {
	f := &file{old: []byte(strings.Repeat("a\n", 1000)), text: []byte("b\n")}
	if got := f.changedLines(shown); len(got) != shown+1 || !strings.Contains(got[shown], "more lines") {
		t.Errorf("%d lines", len(got))
	}
}
