package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	engine "github.com/united-workforce/uwf/engine/config"
)

// world is a home, a repository and a provider for one test.
type world struct {
	t         *testing.T
	home, dir string
	env       []string
	in        string
	out, errs bytes.Buffer
	code      int
}

func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "repo")}
	w.env = append(env, "HOME="+w.home, "UWF_LOG=off")
	if err := os.MkdirAll(filepath.Join(w.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs `uwf setup` with flags; ask is the terminal, if there is one.
func (w *world) run(ask func(context.Context, []Question) error, flags ...string) {
	w.t.Helper()
	w.out.Reset()
	w.errs.Reset()
	f := &app.Factory{IO: app.IO{In: strings.NewReader(w.in), Out: &w.out, Err: &w.errs}, Environ: w.env, Dir: w.dir, Now: time.Now}
	cmd := NewCmdSetup(f, func(ctx context.Context, o *Options) error {
		if ask != nil {
			o.Ask = ask
		}
		return setupRun(ctx, o)
	})
	cmd.SetArgs(flags)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(w.t.Context())
	if w.code = app.ExitCodeOf(err); err != nil {
		w.errs.WriteString(app.Message(err))
	}
	if all := w.out.String() + w.errs.String(); strings.Contains(all, key) || strings.Contains(all, key[len(key)-6:]) {
		w.t.Errorf("the key shows:\n%s", all)
	}
}

func (w *world) file(parts ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{filepath.Dir(w.home)}, parts...)...))
	if err != nil {
		return ""
	}
	return string(b)
}

func provider(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func keyed(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+key {
		answers(401, openai("Incorrect API key provided: "+r.Header.Get("Authorization"), "invalid_api_key"))(w, r)
		return
	}
	answers(200, good)(w, r)
}

func TestPresets(t *testing.T) {
	for _, p := range engine.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			w := newWorld(t)
			w.run(nil, "--provider", p.Name, "--no-test", "--yes")
			if w.code != 0 {
				t.Fatal(w.errs.String())
			}
			first := w.file("home", ".uwf", "config.yaml")
			for _, want := range []string{"baseUrl: " + p.BaseURL, "name: " + p.Model.Name, "defaultModel: " + p.Name,
				fmt.Sprintf("window: %d", p.Model.Window), fmt.Sprintf("maxOutput: %d", p.Model.MaxOutput)} {
				if !strings.Contains(first, want) {
					t.Errorf("%q is not in\n%s", want, first)
				}
			}
			if problems := engine.Check("f", []byte(first)); len(problems) > 0 {
				t.Error(problems)
			}
			w.run(nil, "--provider", p.Name, "--no-test", "--yes")
			if again := w.file("home", ".uwf", "config.yaml"); w.code != 0 || again != first || !strings.Contains(w.out.String(), `"changed": false`) {
				t.Errorf("the second time: %s%s\n%s", w.out.String(), w.errs.String(), again)
			}
			// In the repository as well, where only the vendor's own address gets a key.
			w.run(nil, "--provider", p.Name, "--no-test", "--yes", "--repo")
			if w.code != 0 || w.file("repo", ".uwf", "config.yaml") != first {
				t.Errorf("%d %s", w.code, w.errs.String())
			}
		})
	}
}

// A key on stdin is tried, stored for its owner alone, and used from then on.
func TestKeyOnStdin(t *testing.T) {
	w := newWorld(t)
	base := provider(t, keyed)
	w.in = key + "\n"
	w.run(nil, "--provider", "openai", "--base-url", base, "--api-key", "-")
	if w.code != 0 || !strings.Contains(w.out.String(), `"tested": true`) || !strings.Contains(w.out.String(), `"keyStored": true`) {
		t.Fatalf("%s%s", w.out.String(), w.errs.String())
	}
	if got := w.file("home", ".uwf", ".env"); got != "OPENAI_API_KEY="+key+"\n" {
		t.Errorf(".env: %q", got)
	}
	if info, err := os.Stat(filepath.Join(w.home, ".uwf", ".env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if strings.Contains(w.file("home", ".uwf", "config.yaml"), key) {
		t.Error("the key is in the settings")
	}
	w.run(nil, "--provider", "openai", "--base-url", base, "--api-key", "-")
	if !strings.Contains(w.out.String(), `"changed": false`) || !strings.Contains(w.out.String(), `"keyStored": false`) {
		t.Errorf("the second time: %s%s", w.out.String(), w.errs.String())
	}
	w.in = ""
	w.run(nil, "--provider", "openai", "--base-url", base)
	if w.code != 0 {
		t.Errorf("the stored key is not found: %s", w.errs.String())
	}
	// The environment goes before what is stored, even when it is empty.
	w.env = append(w.env, "OPENAI_API_KEY=")
	w.run(nil, "--provider", "openai", "--base-url", base)
	if w.code != 2 || !strings.Contains(w.errs.String(), "OPENAI_API_KEY is not set") {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
	w.env = append(w.env, "OPENAI_API_KEY=other")
	w.in = key
	w.run(nil, "--provider", "openai", "--base-url", base, "--api-key", "-")
	if w.code != 0 || !strings.Contains(w.errs.String(), "goes before the key") {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
}

// A repository never gets a key; it gets the variable's name.
func TestRepo(t *testing.T) {
	w := newWorld(t)
	w.in = key
	w.run(nil, "--provider", "anthropic", "--no-test", "--api-key", "-", "--repo")
	got := w.file("repo", ".uwf", "config.yaml")
	if w.code != 0 || strings.Contains(got, key) || !strings.Contains(got, "apiKeyEnv: ANTHROPIC_API_KEY") || !strings.Contains(w.file("home", ".uwf", ".env"), key) {
		t.Errorf("%d %s\n%s", w.code, w.errs.String(), got)
	}
	w.run(nil, "--provider", "custom", "--base-url", "https://evil.example/v1", "--model", "m", "--api-key-env", "OPENAI_API_KEY", "--no-test", "--repo")
	if w.code != 2 || !strings.Contains(w.errs.String(), "may not send the key in OPENAI_API_KEY") || w.file("repo", ".uwf", "config.yaml") != got {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
}

// Another model leaves nothing of the former one's size and price; the rest of the
// file stays.
func TestAnotherModel(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.home, ".uwf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".uwf", "config.yaml"), []byte("# mine\nsandbox: require # always\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(nil, "--provider", "openai", "--no-test")
	if said, file := w.errs.String(), w.file("home", ".uwf", "config.yaml"); !strings.Contains(said, "the price of gpt-5.1 is that of 2026-11-23: $1.25 for a million tokens in, $0.125 from a cache, ") || !strings.Contains(file, "asOf: \"2026-11-23\"") {
		t.Errorf("%s%s", said, file)
	}
	w.run(nil, "--provider", "openai", "--model", "my-own", "--no-test", "--agent", "builtin")
	got := w.file("home", ".uwf", "config.yaml")
	want := `# mine
sandbox: require # always
providers:
  openai:
    baseUrl: https://api.openai.com/v1
    apiKeyEnv: OPENAI_API_KEY
models:
  openai:
    provider: openai
    name: my-own
defaultModel: openai
defaultAgent: builtin
`
	if got != want {
		t.Errorf("%s%s", w.errs.String(), got)
	}
}

// What somebody set of the same model by hand stays, as its price does that a limit on
// cost needs.
func TestSameModelAgain(t *testing.T) {
	w := newWorld(t)
	w.run(nil, "--provider", "openai", "--no-test")
	file := filepath.Join(w.home, ".uwf", "config.yaml")
	mine := strings.Replace(w.file("home", ".uwf", "config.yaml"), "input: 1.25", "input: 0.9 # as we are billed", 1)
	if err := os.WriteFile(file, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(nil, "--provider", "openai", "--no-test")
	if got := w.file("home", ".uwf", "config.yaml"); got != mine || !strings.Contains(got, "0.9 # as we are billed") {
		t.Errorf("%s%s", w.errs.String(), got)
	}
}

// A key that stands in the settings stays until the variable has one.
func TestKeyInSettings(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.home, ".uwf"), 0o700); err != nil {
		t.Fatal(err)
	}
	const old = "providers:\n  openai:\n    apiKey: an-old-key-1\n"
	if err := os.WriteFile(filepath.Join(w.home, ".uwf", "config.yaml"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(nil, "--provider", "openai", "--no-test")
	if w.code != 2 || !strings.Contains(w.errs.String(), "keep apiKeyEnv") || w.file("home", ".uwf", "config.yaml") != old {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
	w.in = key
	w.run(nil, "--provider", "openai", "--no-test", "--api-key", "-")
	if got := w.file("home", ".uwf", "config.yaml"); w.code != 0 || strings.Contains(got, "an-old-key") || !strings.Contains(got, "apiKeyEnv") {
		t.Errorf("%d %s\n%s", w.code, w.errs.String(), got)
	}
}

func TestMistakes(t *testing.T) {
	ok := provider(t, answers(200, good))
	wrong := provider(t, keyed)
	for _, x := range []struct {
		name  string
		in    string
		env   string
		flags []string
		code  int
		says  []string
	}{
		{"nothing", "", "", nil, 2, []string{"nobody is here to be asked", "--provider NAME (openai, anthropic"}},
		{"custom alone", "", "", []string{"--provider", "custom"}, 2, []string{"--base-url ADDRESS, --model NAME"}},
		{"no such provider", "", "", []string{"--provider", "opneai"}, 2, []string{`no provider "opneai"; did you mean openai?`}},
		{"key on the command line", "", "", []string{"--provider", "openai", "--api-key", key}, 2, []string{"--api-key -"}},
		{"key as a name", "", "", []string{"--provider", "openai", "--api-key-env", key}, 2, []string{"name of a variable"}},
		{"key that looks like a name", "", "", []string{"--provider", "openai", "--api-key-env", "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"}, 2, []string{"looks like a key"}},
		{"empty stdin", "", "", []string{"--provider", "openai", "--api-key", "-"}, 2, []string{"no key: it is empty"}},
		{"two lines on stdin", "a\nb", "", []string{"--provider", "openai", "--api-key", "-"}, 2, []string{"no key"}},
		{"quotes on stdin", `"` + key + `"`, "", []string{"--provider", "openai", "--api-key", "-"}, 2, []string{"no key"}},
		{"huge stdin", strings.Repeat("x", 9<<10), "", []string{"--provider", "openai", "--api-key", "-"}, 2, []string{"larger than"}},
		{"key for a provider without", key, "", []string{"--provider", "ollama", "--api-key", "-"}, 2, []string{"needs no key"}},
		{"no key", "", "", []string{"--provider", "openai"}, 2, []string{"OPENAI_API_KEY is not set", "--no-test"}},
		{"no such agent", "", "", []string{"--provider", "ollama", "--agent", "bultin", "--no-test"}, 2, []string{"did you mean builtin?"}},
		{"hostile agent", "", "", []string{"--provider", "ollama", "--agent", "../../bin/sh", "--no-test"}, 2, []string{"no agent"}},
		{"bad address", "", "", []string{"--provider", "custom", "--base-url", "ftp://x", "--model", "m", "--no-test"}, 2, []string{"nothing was changed", "baseUrl must be an address"}},
		{"password in the address", "", "", []string{"--provider", "custom", "--base-url", "https://u:p@x.example", "--model", "m", "--no-test"}, 2, []string{"password"}},
		{"wrong key", "", "OPENAI_API_KEY=" + "another-key-9", []string{"--provider", "openai", "--base-url", wrong}, 1, []string{"does not take the key in OPENAI_API_KEY (the environment) (401)", "nothing was written"}},
		{"wrong address", "", "", []string{"--provider", "custom", "--base-url", strings.TrimSuffix(ok, "/v1") + ":0", "--model", "m"}, 1, []string{"nothing was written"}},
		{"both files", "", "", []string{"--provider", "openai", "--user", "--repo"}, 1, []string{"user repo"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, x.env)
			w.in = x.in
			w.run(nil, x.flags...)
			if w.code != x.code {
				t.Errorf("exit code %d: %s", w.code, w.errs.String())
			}
			for _, s := range x.says {
				if !strings.Contains(w.errs.String(), s) {
					t.Errorf("doesn't say %q: %s", s, w.errs.String())
				}
			}
			if got := w.file("home", ".uwf", "config.yaml") + w.file("home", ".uwf", ".env") + w.file("repo", ".uwf", "config.yaml"); got != "" {
				t.Errorf("written: %s", got)
			}
		})
	}
}

func TestVariableFile(t *testing.T) {
	for _, x := range []struct{ old, want string }{
		{"", "K=v\n"},
		{"A=1", "A=1\nK=v\n"},
		{"# c\nK=old # x\nB=2\n", "# c\nK=v\nB=2\n"},
		{"export K='old'\n", "K=v\n"},
		{"K: old\nA=1\nK=older\n", "K=v\nA=1\n"},
		{"KK=1\r\n", "KK=1\r\nK=v\r\n"},
		{"K=v\n\n\n", "K=v\n\n\n"},
	} {
		got, err := withVariable([]byte(x.old), "K", "v")
		if err != nil || string(got) != x.want {
			t.Errorf("%q: %q %v", x.old, got, err)
		}
	}
	for _, bad := range []string{"not a line\n", "K=\"a\nb\n", strings.Repeat("x", 2<<20)} {
		if got, err := withVariable([]byte(bad), "K", "v"); err == nil {
			t.Errorf("%.20q: %.40q", bad, got)
		}
	}
}

func FuzzVariableFile(f *testing.F) {
	f.Add("A=1\nK='x'\n", "sk-abc")
	f.Add("K=\"a\nb\"\n#", "v=#")
	f.Fuzz(func(t *testing.T, old, value string) {
		if checkKey(value) != nil {
			return
		}
		before, err := engine.ParseEnv([]byte(old))
		if err != nil {
			return
		}
		text, err := withVariable([]byte(old), "K", value)
		if err != nil {
			return
		}
		after, err := engine.ParseEnv(text)
		if err != nil || after["K"] != value {
			t.Fatalf("%q %v", text, err)
		}
		for name, v := range before {
			if name != "K" && after[name] != v {
				t.Fatalf("%s was %q and is %q in %q", name, v, after[name], text)
			}
		}
	})
}

// The questions, line by line, as screen readers get them.
func TestQuestions(t *testing.T) {
	base := provider(t, answers(200, good))
	w := newWorld(t, "OPENAI_API_KEY="+key)
	var screen bytes.Buffer
	ask := func(lines string) func(context.Context, []Question) error {
		return (&terminal{in: io.NopCloser(strings.NewReader(lines)), out: &screen, plain: true}).ask
	}
	w.run(ask("1\n\n1\n\n2\ny\n"), "--base-url", base, "--agent", "builtin")
	// The address is none of the vendor's own, so the repository's file can't have it.
	if w.code != 2 || !strings.Contains(w.errs.String(), "may not send the key") {
		t.Errorf("%d %s\n%s", w.code, w.errs.String(), screen.String())
	}
	w.run(ask("1\n\n1\n\n1\ny\n"), "--base-url", base, "--agent", "builtin")
	if w.code != 0 || !strings.Contains(w.file("home", ".uwf", "config.yaml"), "name: gpt-5.1") || !strings.Contains(screen.String(), "OPENAI_API_KEY, which is set in the environment") {
		t.Errorf("%d %s\n%s", w.code, w.errs.String(), screen.String())
	}
	w.run(ask("99\nx\n7\nnonsense\n"+base+"\nmy-model\n3\ny\n"), "--user", "--agent", "builtin")
	if got := w.file("home", ".uwf", "config.yaml"); w.code != 0 || !strings.Contains(got, "defaultModel: custom") || !strings.Contains(got, "name: my-model") {
		t.Errorf("%d %s\n%s\n%s", w.code, w.errs.String(), got, screen.String())
	}
	before := w.file("home", ".uwf", "config.yaml")
	for name, lines := range map[string]string{"no": "1\n\n1\n\n1\nn\n", "the input ends": "1\n", "nothing at all": ""} {
		w.run(ask(lines), "--base-url", base, "--agent", "builtin")
		if w.code != 1 || !strings.Contains(w.errs.String(), "nothing was written") || w.file("home", ".uwf", "config.yaml") != before {
			t.Errorf("%s: %d %s", name, w.code, w.errs.String())
		}
	}
	// --yes asks nothing, on a terminal too.
	w.run(func(context.Context, []Question) error { return errors.New("asked") }, "--provider", "ollama", "--no-test", "--yes")
	if w.code != 0 {
		t.Error(w.errs.String())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	r, wr := io.Pipe()
	defer func() { _ = wr.Close() }()
	interrupted := &Options{Factory: app.NewAt(t.TempDir(), nil, app.IO{Err: io.Discard}), Ask: (&terminal{in: r, out: io.Discard, plain: true}).ask}
	if err := interrupted.askAll(ctx, &Answers{}); err == nil || err.Error() != "interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}
