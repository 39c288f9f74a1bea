// Package checks knows the checks that a repository has by itself (its tests, its linter),
// and which of its files decide what they say. It is pure, and runs nothing.
package checks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// testCheck and lintCheck are the checks that toolchains have a command for.
const testCheck, lintCheck = "test", "lint"

// Found is a command that a repository's files stand for.
type Found struct {
	Command string `json:"command"`          // for sh -c
	File    string `json:"file"`             // the file that says so
	Script  string `json:"script,omitempty"` // what the command runs by that file, where it says that
}

// Folder is a folder in which a toolchain is looked for.
type Folder struct {
	Read func(file string) ([]byte, bool) // one of its files, up to a size that the caller chooses
	List func() []string                  // the names in it
}

// Detect finds the command of a check by the files of a folder.
func Detect(name string, in Folder) (Found, bool) {
	if _, ok := in.Read("go.mod"); ok && goCommands[name] != "" {
		return Found{Command: goCommands[name], File: "go.mod"}, true
	}
	for _, r := range runners {
		b, _ := in.Read(r.file)
		if script := namedScript(b, r.field, name); script != "" {
			return Found{Command: cmp.Or(r.runs, packageManager(in.Read)+" run") + " " + name, File: r.file, Script: script}, true
		}
	}
	for _, t := range toolchains {
		b, ok := in.Read(t.file)
		if ok && t.check == name && (t.says == "" || strings.Contains(string(b), t.says)) {
			return Found{Command: t.command, File: t.file}, true
		}
	}
	if b, ok := in.Read("Makefile"); ok && hasTarget(b, name) {
		return Found{Command: "make " + name, File: "Makefile"}, true
	}
	return detectDotnet(name, in)
}

// detectDotnet finds the one solution or test project of a folder. With two of a kind, and without
// a name, dotnet asks which is meant.
func detectDotnet(name string, in Folder) (Found, bool) {
	if name != testCheck {
		return Found{}, false
	}
	for _, kind := range [...]struct{ ending, says string }{{".sln", ""}, {".slnx", ""}, {".csproj", "Microsoft.NET.Test.Sdk"}} {
		files := lists.Filter(in.List(), func(file string) bool { return strings.HasSuffix(file, kind.ending) })
		if len(files) != 1 {
			continue
		}
		if b, ok := in.Read(files[0]); ok && strings.Contains(string(b), kind.says) {
			return Found{Command: "dotnet test " + text.ShellWord(files[0]), File: files[0]}, true
		}
	}
	return Found{}, false
}

var goCommands = map[string]string{testCheck: "go test ./...", lintCheck: "go vet ./..."}

// runners run the scripts that a field of a file names; without a program of their own, by the
// package manager.
var runners = [...]struct{ file, field, runs string }{
	{"package.json", "scripts", ""}, {"deno.json", "tasks", "deno task"}, {"deno.jsonc", "tasks", "deno task"}, {"composer.json", "scripts", "composer run-script"},
}

// toolchains have a command where a file is there, and says something.
var toolchains = [...]struct{ check, file, says, command string }{
	{testCheck, "Cargo.toml", "", "cargo test"},
	{testCheck, "pytest.ini", "", "python3 -m pytest"},
	{testCheck, "pyproject.toml", "pytest", "python3 -m pytest"},
	{testCheck, "setup.cfg", "pytest", "python3 -m pytest"},
	{testCheck, "tox.ini", "pytest", "python3 -m pytest"},
	{testCheck, "pom.xml", "", "mvn -B -q test"},
	{testCheck, "gradlew", "", "./gradlew test"},
	{testCheck, "mix.exs", "", "mix test"},
	{testCheck, "deno.json", "", "deno test"},
	{testCheck, "deno.jsonc", "", "deno test"},
	{testCheck, ".rspec", "", "bundle exec rspec"},
	{testCheck, "Rakefile", "TestTask", "bundle exec rake test"},
	{testCheck, "Directory.Packages.props", "Microsoft.NET.Test.Sdk", "dotnet test"},
	{testCheck, "Directory.Build.props", "Microsoft.NET.Test.Sdk", "dotnet test"},
	{testCheck, "phpunit.xml", "", "vendor/bin/phpunit"},
	{testCheck, "phpunit.xml.dist", "", "vendor/bin/phpunit"},
}

// lenient finds what Deno allows in JSON: comments, and a comma before a bracket. Its groups, a text
// and the bracket, stay.
var lenient = lazyregexp.New(`(?s)("(?:[^"\\]|\\.)*")|,(?:\s|//[^\n]*|/\*.*?\*/)*([}\]])|//[^\n]*|/\*.*?\*/`)

// namedScript is what a script of a package.json or its like runs, with what runs before and after
// it; what `npm init` writes in the place of tests is none. Names are compared as npm does, which
// knows no "Scripts": else other text would be shown than runs. Deno reads comments.
func namedScript(b []byte, field, name string) string {
	var file map[string]json.RawMessage
	var scripts map[string]any
	if json.Unmarshal([]byte(lenient.ReplaceAllString(string(b), "$1$2")), &file) != nil || json.Unmarshal(file[field], &scripts) != nil {
		return ""
	}
	script, _ := scripts[name].(string)
	if list, ok := scripts[name].([]any); ok { // composer runs one after the other
		script = strings.Join(lists.Map(list, func(v any) string { return fmt.Sprint(v) }), " && ")
	}
	if task, ok := scripts[name].(map[string]any); ok { // of Deno
		script = fmt.Sprint(cmp.Or(task["command"], task["dependencies"]))
	}
	if strings.TrimSpace(script) == "" || strings.Contains(script, "no test specified") {
		return ""
	}
	if before, _ := scripts["pre"+name].(string); before != "" {
		script = before + " && " + script
	}
	if after, _ := scripts["post"+name].(string); after != "" {
		script += " && " + after
	}
	return script
}

// packageManager is the one whose lock file is there.
func packageManager(read func(file string) ([]byte, bool)) string {
	for _, t := range tools {
		if t.run == "" {
			continue
		}
		if _, ok := read(t.lock); ok {
			return t.run
		}
	}
	return "npm"
}

// hasTarget finds a rule for a target: neither a variable of its name nor a line of a recipe.
func hasTarget(makefile []byte, name string) bool {
	for line := range strings.Lines(string(makefile)) {
		targets, rest, ok := strings.Cut(line, ":")
		assigns := strings.Contains(targets, "=") || strings.HasPrefix(strings.TrimLeft(rest, ":"), "=")
		if ok && !assigns && !strings.ContainsAny(targets, "#\t") && slices.Contains(strings.Fields(targets), name) {
			return true
		}
	}
	return false
}

// testDeclarations find the tests that a file declares, by the end of its name.
var testDeclarations = map[string]*lazyregexp.Regexp{
	"_test.go": lazyregexp.New(`(?m)^func (Test|Fuzz|Example|Benchmark)\w*\(`),
	".py":      lazyregexp.New(`(?m)^\s*(async )?def test\w*\(`),
	".rs":      lazyregexp.New(`(?m)^\s*#\[(tokio::)?test\b`),
	".java":    lazyregexp.New(`(?m)^\s*@(Test|ParameterizedTest)\b`),
	".kt":      lazyregexp.New(`(?m)^\s*@(Test|ParameterizedTest)\b`),
	".exs":     lazyregexp.New(`(?m)^\s*test "`),
	".rb":      lazyregexp.New(`(?m)^\s*(it|test|specify) ["']|^\s*def test_`),
	".js":      scriptTest, ".jsx": scriptTest, ".mjs": scriptTest, ".cjs": scriptTest, ".ts": scriptTest, ".tsx": scriptTest, ".mts": scriptTest,
}

var scriptTest = lazyregexp.New("(?m)^\\s*(it|test)(\\.each\\([^\\n]*\\))?\\(")

// CanHoldTests says whether tests are looked for in a file of such a name.
func CanHoldTests(path string) bool { return findDeclaration(path) != nil }

// CountTests counts the tests that a file declares, by its text. One that is declared as
// skipped (it.skip, xit) is none; one that skips itself when it runs counts.
func CountTests(path string, content []byte) int {
	tests := findDeclaration(path)
	if tests == nil {
		return 0
	}
	return len(tests.FindAllStringIndex(string(content), -1))
}

func findDeclaration(path string) *lazyregexp.Regexp {
	for suffix, tests := range testDeclarations {
		if strings.HasSuffix(path, suffix) {
			return tests
		}
	}
	return nil
}
