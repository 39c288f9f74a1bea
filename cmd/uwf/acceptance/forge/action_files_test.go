package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/action"
	runnerci "github.com/united-workforce/uwf/engine/runner/ci"
)

// actionFile is an action.yml.
type actionFile struct {
	Name, Description string
	Inputs            section
	Outputs           section
	Runs              struct {
		Using, Image string
		Args         []string
		Steps        []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

// section is a map whose order counts.
type section struct {
	names []string
	of    map[string]parameter
}

type parameter struct {
	Description, Default, Value string
	Required                    bool
}

func (s *section) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i < len(n.Content); i += 2 {
		s.names = append(s.names, n.Content[i].Value)
	}
	return n.Decode(&s.of)
}

func readAction(t *testing.T, name string) actionFile {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	var a actionFile
	if err := yaml.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

const (
	containerAction = "action.yml"
	hostAction      = ".github/actions/host/action.yml"
)

// What the action says that it takes and gives is what the program reads and writes,
// and the host variant hands on all of it.
func TestActionFiles(t *testing.T) {
	a, host := readAction(t, containerAction), readAction(t, hostAction)
	if want := action.InputNames(); !slices.Equal(slices.Sorted(slices.Values(a.Inputs.names)), want) {
		t.Errorf("action.yml has the inputs\n%v\nand the program reads\n%v", a.Inputs.names, want)
	}
	var want []string
	for _, output := range action.OutputsOf(runnerci.Outcome{}) {
		want = append(want, output[0])
	}
	if !slices.Equal(a.Outputs.names, want) {
		t.Errorf("action.yml has the outputs %v, and the program writes %v", a.Outputs.names, want)
	}
	if !slices.Equal(host.Inputs.names, a.Inputs.names) || !slices.Equal(host.Outputs.names, a.Outputs.names) {
		t.Errorf("the host variant differs:\n%v\n%v", host.Inputs.names, host.Outputs.names)
	}
	run := host.Runs.Steps[len(host.Runs.Steps)-1]
	env := maps.Clone(run.Env)
	delete(env, "UWF_INSTALLED")
	for _, name := range a.Inputs.names {
		if a.Inputs.of[name] != host.Inputs.of[name] {
			t.Errorf("input %s: %+v, on the host %+v", name, a.Inputs.of[name], host.Inputs.of[name])
		}
		if a.Inputs.of[name].Description == "" || a.Inputs.of[name].Required {
			t.Errorf("input %s: %+v", name, a.Inputs.of[name])
		}
		variable := "INPUT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if want := "${{ inputs." + name + " }}"; env[variable] != want {
			t.Errorf("the host variant hands %s on as %q, want %q", variable, env[variable], want)
		}
		delete(env, variable)
	}
	if len(env) > 0 {
		t.Errorf("the host variant hands on what is no input: %v", env)
	}
	for _, name := range a.Outputs.names {
		if out := host.Outputs.of[name]; out.Description != a.Outputs.of[name].Description || out.Value != "${{ steps."+run.ID+".outputs."+name+" }}" {
			t.Errorf("output %s: %+v", name, out)
		}
	}
	if a.Runs.Using != "docker" || a.Runs.Image != "Dockerfile" || !slices.Equal(a.Runs.Args, []string{"action"}) || host.Runs.Using != "composite" {
		t.Errorf("how they run: %+v, %+v", a.Runs, host.Runs)
	}
	for _, s := range host.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: an expression in a script is a way in: %s", s.ID, s.Run)
		}
	}
}

var update = flag.Bool("update", false, "write the tables of docs/action.md and the golden files of testdata/projects")

// TestActionTable keeps the tables of docs/action.md equal to action.yml:
//
//	go test ./cmd/uwf/acceptance/forge -run TestActionTable -update
func TestActionTable(t *testing.T) {
	const page = "../../../../docs/action.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	a, text := readAction(t, containerAction), string(raw)
	for name, table := range map[string]string{"action-inputs": inputTable(a.Inputs), "action-outputs": outputTable(a.Outputs)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		was, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("docs/action.md has no table between %s and %s", strings.TrimSpace(begin), end)
		}
		if was != table && !*update {
			t.Errorf("docs/action.md's table %s is not that of action.yml; write it with: go test ./cmd/uwf/acceptance/forge -run TestActionTable -update\n%s", name, table)
		}
		text = before + begin + table + end + after
	}
	if *update && text != string(raw) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
}

func inputTable(s section) string {
	var b strings.Builder
	b.WriteString("| input | what it is | default |\n|---|---|---|\n")
	for _, name := range s.names {
		p := s.of[name]
		otherwise := ""
		if p.Default != "" {
			otherwise = "`" + cell(p.Default) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, cell(p.Description), otherwise)
	}
	return b.String()
}

func outputTable(s section) string {
	var b strings.Builder
	b.WriteString("| output | what it is |\n|---|---|\n")
	for _, name := range s.names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(s.of[name].Description))
	}
	return b.String()
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSpace(s))
}

// TestDockerfile checks by reading what a build would show, for machines without an
// engine.
func TestDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	from := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(text, -1)
	if len(from) != 2 {
		t.Fatalf("%d stages", len(from))
	}
	for _, f := range from {
		if !regexp.MustCompile(`[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}( AS \w+)?$`).MatchString(f[1]) {
			t.Errorf("FROM %s: not pinned by digest", f[1])
		}
	}
	final := text[strings.LastIndex(text, "\nFROM "):]
	for _, want := range []string{"bash", "ca-certificates", "coreutils", "curl", "git", "jq", "ripgrep", "--no-install-recommends", "rm -rf /var/lib/apt/lists",
		"useradd", sandbox.AgentName, fmt.Sprintf("--uid %d", sandbox.AgentID), "nologin", `ENTRYPOINT ["/usr/local/bin/uwf"]`, "org.opencontainers.image.source"} {
		if !strings.Contains(final, want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "--platform=$BUILDPLATFORM", "COPY go.mod go.sum"} {
		if !strings.Contains(text, want) {
			t.Errorf("the build lacks %q", want)
		}
	}
	if regexp.MustCompile(`(?m)^(USER|ADD|WORKDIR /github)`).MatchString(final) {
		t.Error("a container action runs as root, in the folder that the runner gives")
	}
	embedded(t)
}

// embedded checks that the build context has every package and every file that the
// binary is made of.
func embedded(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "github.com/united-workforce/uwf/cmd/uwf")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../../../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	var tops []string
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			tops = append(tops, name)
		}
	}
	n := 0
	for file := range strings.Lines(string(out)) {
		rel, err := filepath.Rel(top, strings.TrimSpace(file))
		if err != nil || strings.TrimSpace(file) == "" {
			continue
		}
		n++
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if !slices.Contains(tops, first) || strings.HasSuffix(rel, "_test.go") || strings.Contains("/"+filepath.ToSlash(rel), "/testdata/") {
			t.Errorf("%s is not in the build context: .dockerignore leaves it out", rel)
		}
	}
	if n < 100 {
		t.Errorf("only %d files were checked", n)
	}
}

// TestImage builds the image and runs it, where there is an engine.
func TestImage(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		t.Skipf("NOT CHECKED: the image was not built, because no container engine answers (docker info: %v %s); TestDockerfile and TestActionContainer check what they can without", err, strings.TrimSpace(string(out)))
	}
	docker := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	docker("build", "--tag", "uwf:test", "--build-arg", "VERSION=v0.0.0-test", "../../../..")
	t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", "--force", "uwf:test").Run() })
	if out := docker("run", "--rm", "uwf:test", "--version"); !strings.Contains(out, "v0.0.0-test") {
		t.Errorf("%s", out)
	}
	out := docker("run", "--rm", "--entrypoint", "bash", "uwf:test", "-c", "git --version && curl --version && jq --version && rg --version && id -u uwf-agent && stat --version")
	if !strings.Contains(out, fmt.Sprint(sandbox.AgentID)) {
		t.Errorf("%s", out)
	}
}

// TestInstall runs the host variant's script.
func TestInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is for bash on Linux and macOS")
	}
	raw, err := os.ReadFile("../../../../.github/actions/host/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	const program = "#!/bin/sh\necho the release\n"
	sum := func(text string) string { h := sha256.Sum256([]byte(text)); return hex.EncodeToString(h[:]) }
	good := "# v1.2.3\n" + sum(program) + "  uwf_linux_amd64\n" + sum("other") + "  uwf_darwin_arm64\n"
	for name, tt := range map[string]struct {
		env       []string
		checksums string // of the release that the action belongs to; empty: it belongs to none
		released  string // what the server has
		cached    string // what an earlier job left
		code      int
		want      string // what the binary prints, or the error
	}{
		"a release":             {checksums: good, released: program, want: "the release"},
		"from the cache":        {checksums: good, cached: program, want: "the release"},
		"a changed cache":       {checksums: good, released: program, cached: "#!/bin/sh\necho evil\n", want: "the release"},
		"a changed release":     {checksums: good, released: "#!/bin/sh\necho evil\n", code: 2, want: "checksum differs"},
		"no such release":       {checksums: good, code: 2, want: "can't be downloaded"},
		"a system without one":  {checksums: good, env: []string{"RUNNER_OS=Windows"}, code: 2, want: "no binary for Windows"},
		"a machine without one": {checksums: good, env: []string{"RUNNER_ARCH=ARM"}, code: 2, want: "no binary for ARM"},
		"not in the release":    {checksums: good, env: []string{"RUNNER_ARCH=ARM64"}, code: 2, want: "has no uwf_linux_arm64"},
		"nonsense":              {checksums: "v1\n", code: 2, want: "doesn't begin with a version"},
		"a version that leaves": {checksums: "# v1/../../x\n", code: 2, want: "doesn't begin with a version"},
		"one that is there":     {checksums: good, env: []string{"UWF_BINARY=/bin/echo"}, want: ""},
		"one that is not":       {env: []string{"UWF_BINARY=/nowhere/uwf"}, code: 2, want: "is no program"},
		"without go":            {code: 2, want: "no go to build it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put := func(name, text string, mode os.FileMode) {
				t.Helper()
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			here := "action/.github/actions/host/"
			put(here+"install.sh", string(raw), 0o700)
			put("output", "", 0o600)
			put("temp/x", "", 0o600)
			if tt.checksums != "" {
				put(here+"checksums.txt", tt.checksums, 0o600)
			}
			if tt.released != "" {
				put("releases/v1.2.3/uwf_linux_amd64", tt.released, 0o600)
			}
			if tt.cached != "" {
				put("tools/uwf/v1.2.3/uwf_linux_amd64/uwf", tt.cached, 0o700)
			}
			bash, err := exec.LookPath("bash")
			if err != nil {
				t.Skip("there is no bash")
			}
			cmd := exec.CommandContext(t.Context(), bash, filepath.Join(dir, filepath.FromSlash(here), "install.sh"))
			cmd.Env = append([]string{
				"PATH=" + withoutGo(t, dir), "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_TEMP=" + filepath.Join(dir, "temp"),
				"RUNNER_TOOL_CACHE=" + filepath.Join(dir, "tools"), "GITHUB_OUTPUT=" + filepath.Join(dir, "output"), "UWF_RELEASES=file://" + filepath.Join(dir, "releases"),
			}, tt.env...)
			out, _ := cmd.CombinedOutput() // the exit code says it
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Fatalf("exit code %d, want %d: %s", code, tt.code, out)
			}
			if tt.code != 0 {
				if !strings.Contains(string(out), "::error title=uwf::") || !strings.Contains(string(out), tt.want) {
					t.Errorf("%s", out)
				}
				return
			}
			said, err := os.ReadFile(filepath.Join(dir, "output"))
			if err != nil {
				t.Fatal(err)
			}
			binary, ok := strings.CutPrefix(strings.TrimSpace(string(said)), "binary=")
			if !ok {
				t.Fatalf("output: %s", said)
			}
			ran, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
			if err != nil || strings.TrimSpace(string(ran)) != tt.want {
				t.Errorf("%s: %v, %s", binary, err, ran)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "temp", "uwf-install*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestInstallScript has the script checked, where shellcheck is there.
func TestInstallScript(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("NOT CHECKED: shellcheck is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), "shellcheck", "../../../../.github/actions/host/install.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// withoutGo is a PATH with what the script uses, and nothing else.
func withoutGo(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dirname", "uname", "awk", "sha256sum", "shasum", "cut", "mktemp", "curl", "chmod", "mkdir", "mv", "rm", "sed", "sh", "perl"} {
		if file, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bin
}

// TestShippedWorkflows checks what the workflow files that people copy promise.
func TestShippedWorkflows(t *testing.T) {
	type job struct {
		If          string
		Needs       any
		Permissions map[string]string
		Steps       []struct {
			Uses string
			With map[string]string
		}
	}
	commands := map[string]string{"step": "", "agent": "run", "commit": "commit", "rescue": "rescue", "stopped": "stopped"}
	for _, name := range []string{"uwf.yml", "two-jobs.yml"} {
		raw, err := os.ReadFile("../../../../examples/github/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		var w struct {
			Permissions map[string]string
			Jobs        map[string]job
		}
		if err := yaml.Unmarshal(raw, &w); err != nil {
			t.Fatal(err)
		}
		if w.Permissions == nil || len(w.Permissions) != 0 {
			t.Errorf("%s: jobs have more than they ask for: %v", name, w.Permissions)
		}
		if n := strings.Count(text, "secrets."); n != 1 || strings.Contains(text, "cancel-in-progress: true") || !strings.Contains(text, "branches-ignore") || !strings.Contains(text, "persist-credentials: false") {
			t.Errorf("%s: %d secrets, want one", name, n)
		}
		for id, j := range w.Jobs {
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "united-workforce/") && (s.With["command"] != commands[id] || (s.With["needs"] == "${{ toJSON(needs) }}") != (j.Needs != nil)) {
					t.Errorf("%s: job %s has the inputs %v", name, id, s.With)
				}
				if !strings.HasPrefix(s.Uses, "united-workforce/uwf@v") && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(s.Uses) {
					t.Errorf("%s: %s: %s is not pinned", name, id, s.Uses)
				}
			}
		}
		if name == "uwf.yml" {
			continue
		}
		agent, commit := w.Jobs["agent"], w.Jobs["commit"]
		if !maps.Equal(agent.Permissions, map[string]string{"contents": "read"}) || commit.Needs != "agent" || !strings.Contains(commit.If, "always()") {
			t.Errorf("the job with agents may do %v; the one after it is %+v", agent.Permissions, commit)
		}
		for _, s := range commit.Steps {
			for in, v := range s.With {
				if strings.Contains(v, "secrets.") || in == "api-key" {
					t.Errorf("the job that writes has the model's key: %s", in)
				}
			}
		}
	}
}
