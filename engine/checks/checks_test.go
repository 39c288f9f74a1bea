package checks_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/checks"
)

// TestDetect: what a folder's files stand for, and what only looks like it.
func TestDetect(t *testing.T) {
	const script = `{"scripts": {"test": "node t.js", "lint": "eslint ."}}`
	npm := checks.Found{Command: "npm run test", File: "package.json", Script: "node t.js"}
	for name, c := range map[string]struct {
		check string
		files map[string]string
		want  checks.Found
	}{
		"Go":                    {"test", map[string]string{"go.mod": ""}, checks.Found{Command: "go test ./...", File: "go.mod"}},
		"Go's lint":             {"lint", map[string]string{"go.mod": ""}, checks.Found{Command: "go vet ./...", File: "go.mod"}},
		"Go has no build":       {"build", map[string]string{"go.mod": ""}, checks.Found{}},
		"Go before npm":         {"test", map[string]string{"go.mod": "", "package.json": script}, checks.Found{Command: "go test ./...", File: "go.mod"}},
		"a script beside Go":    {"build", map[string]string{"go.mod": "", "package.json": `{"scripts": {"build": "tsc"}}`}, checks.Found{Command: "npm run build", File: "package.json", Script: "tsc"}},
		"npm":                   {"test", map[string]string{"package.json": script}, npm},
		"npm's lint":            {"lint", map[string]string{"package.json": script}, checks.Found{Command: "npm run lint", File: "package.json", Script: "eslint ."}},
		"npm has no such one":   {"types", map[string]string{"package.json": script}, checks.Found{}},
		"npm before the rest":   {"test", map[string]string{"package.json": script, "Cargo.toml": "", "Makefile": "test:\n"}, npm},
		"pnpm":                  {"test", map[string]string{"package.json": script, "pnpm-lock.yaml": "", "yarn.lock": ""}, checks.Found{Command: "pnpm run test", File: "package.json", Script: "node t.js"}},
		"yarn":                  {"test", map[string]string{"package.json": script, "yarn.lock": ""}, checks.Found{Command: "yarn run test", File: "package.json", Script: "node t.js"}},
		"bun":                   {"test", map[string]string{"package.json": script, "bun.lock": ""}, checks.Found{Command: "bun run test", File: "package.json", Script: "node t.js"}},
		"bun as it was":         {"test", map[string]string{"package.json": script, "bun.lockb": ""}, checks.Found{Command: "bun run test", File: "package.json", Script: "node t.js"}},
		"npm's placeholder":     {"test", map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, checks.Found{}},
		"the placeholder, make": {"test", map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`, "Makefile": "test:\n"}, checks.Found{Command: "make test", File: "Makefile"}},
		"a script of nothing":   {"test", map[string]string{"package.json": `{"scripts": {"test": " "}}`}, checks.Found{}},
		"no scripts":            {"test", map[string]string{"package.json": `{}`}, checks.Found{}},
		"a broken package.json": {"test", map[string]string{"package.json": script + "}"}, checks.Found{}},
		"a list of scripts":     {"test", map[string]string{"package.json": `{"scripts": ["test"]}`}, checks.Found{}},
		"a script that is none": {"test", map[string]string{"package.json": `{"scripts": {"test": 5}}`}, checks.Found{}},
		"another entry is none": {"test", map[string]string{"package.json": `{"scripts": {"test": "node t.js", "x": 5}}`}, npm},
		"no object":             {"test", map[string]string{"package.json": `null`}, checks.Found{}},
		// What npm runs is what a person is shown.
		"another spelling":     {"test", map[string]string{"package.json": `{"scripts": {"test": "node t.js"}, "Scripts": {"test": "true"}}`}, npm},
		"another name":         {"test", map[string]string{"package.json": `{"scripts": {"Test": "node t.js"}}`}, checks.Found{}},
		"scripts twice":        {"test", map[string]string{"package.json": `{"scripts": {"test": "true"}, "scripts": {"test": "node t.js"}}`}, npm},
		"what runs before":     {"test", map[string]string{"package.json": `{"scripts": {"pretest": "node b.js", "test": "node t.js", "posttest": "node a.js"}}`}, checks.Found{Command: "npm run test", File: "package.json", Script: "node b.js && node t.js && node a.js"}},
		"Cargo":                {"test", map[string]string{"Cargo.toml": ""}, checks.Found{Command: "cargo test", File: "Cargo.toml"}},
		"Cargo has no lint":    {"lint", map[string]string{"Cargo.toml": ""}, checks.Found{}},
		"pytest.ini":           {"test", map[string]string{"pytest.ini": ""}, checks.Found{Command: "python3 -m pytest", File: "pytest.ini"}},
		"pyproject":            {"test", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]"}, checks.Found{Command: "python3 -m pytest", File: "pyproject.toml"}},
		"pyproject without":    {"test", map[string]string{"pyproject.toml": "[project]"}, checks.Found{}},
		"setup.cfg":            {"test", map[string]string{"setup.cfg": "[tool:pytest]"}, checks.Found{Command: "python3 -m pytest", File: "setup.cfg"}},
		"tox.ini":              {"test", map[string]string{"tox.ini": "[pytest]"}, checks.Found{Command: "python3 -m pytest", File: "tox.ini"}},
		"Maven":                {"test", map[string]string{"pom.xml": ""}, checks.Found{Command: "mvn -B -q test", File: "pom.xml"}},
		"Gradle":               {"test", map[string]string{"gradlew": ""}, checks.Found{Command: "./gradlew test", File: "gradlew"}},
		"mix":                  {"test", map[string]string{"mix.exs": ""}, checks.Found{Command: "mix test", File: "mix.exs"}},
		"deno":                 {"test", map[string]string{"deno.json": ""}, checks.Found{Command: "deno test", File: "deno.json"}},
		"deno with comments":   {"test", map[string]string{"deno.jsonc": ""}, checks.Found{Command: "deno test", File: "deno.jsonc"}},
		"RSpec":                {"test", map[string]string{".rspec": "", "Rakefile": "TestTask"}, checks.Found{Command: "bundle exec rspec", File: ".rspec"}},
		"Rake":                 {"test", map[string]string{"Rakefile": "Rake::TestTask.new"}, checks.Found{Command: "bundle exec rake test", File: "Rakefile"}},
		"Rake without":         {"test", map[string]string{"Rakefile": "task :x"}, checks.Found{}},
		"deno's task":          {"test", map[string]string{"deno.json": `{"tasks": {"test": "deno test -A"}}`}, checks.Found{Command: "deno task test", File: "deno.json", Script: "deno test -A"}},
		"deno's other task":    {"test", map[string]string{"deno.json": `{"tasks": {"dev": "deno run x.ts"}}`}, checks.Found{Command: "deno test", File: "deno.json"}},
		"deno, commented":      {"test", map[string]string{"deno.jsonc": "{\n  // all of it\n  \"tasks\": {\"test\": \"deno test -A //x\"}}"}, checks.Found{Command: "deno task test", File: "deno.jsonc", Script: "deno test -A //x"}},
		"deno, an object":      {"test", map[string]string{"deno.json": `{"tasks": {"test": {"description": "d", "command": "deno test -A"}}}`}, checks.Found{Command: "deno task test", File: "deno.json", Script: "deno test -A"}},
		"deno, others first":   {"test", map[string]string{"deno.json": `{"tasks": {"test": {"dependencies": ["unit"]}}}`}, checks.Found{Command: "deno task test", File: "deno.json", Script: "[unit]"}},
		"deno, all comments":   {"test", map[string]string{"deno.jsonc": "/* a\n{ */ {\"tasks\": { // b\n\"test\": {\"command\": \"deno test \\\"/*x,}\\\"\", // c\n /* d */ },\n}, }"}, checks.Found{Command: "deno task test", File: "deno.jsonc", Script: `deno test "/*x,}"`}},
		".NET":                 {"test", map[string]string{"Directory.Packages.props": `<PackageVersion Include="Microsoft.NET.Test.Sdk" Version="17.0.0" />`}, checks.Found{Command: "dotnet test", File: "Directory.Packages.props"}},
		".NET, a solution":     {"test", map[string]string{"My App.sln": "", "My App.csproj": ""}, checks.Found{Command: "dotnet test 'My App.sln'", File: "My App.sln"}},
		".NET, two solutions":  {"test", map[string]string{"A.sln": "", "B.sln": "", "C.slnx": "<Solution />"}, checks.Found{Command: "dotnet test C.slnx", File: "C.slnx"}},
		".NET, a test project": {"test", map[string]string{"T.csproj": `<PackageReference Include="Microsoft.NET.Test.Sdk" />`}, checks.Found{Command: "dotnet test T.csproj", File: "T.csproj"}},
		".NET, a program":      {"test", map[string]string{"P.csproj": "<Project />"}, checks.Found{}},
		".NET's lint":          {"lint", map[string]string{"A.sln": ""}, checks.Found{}},
		".NET without":         {"test", map[string]string{"Directory.Build.props": `<Project />`}, checks.Found{}},
		"composer":             {"test", map[string]string{"composer.json": `{"scripts": {"test": "pest"}}`, "phpunit.xml": ""}, checks.Found{Command: "composer run-script test", File: "composer.json", Script: "pest"}},
		"composer, a list":     {"test", map[string]string{"composer.json": `{"scripts": {"test": ["@lint", "pest"]}}`}, checks.Found{Command: "composer run-script test", File: "composer.json", Script: "@lint && pest"}},
		"composer's lint":      {"lint", map[string]string{"composer.json": `{"scripts": {"lint": "pint --test"}}`}, checks.Found{Command: "composer run-script lint", File: "composer.json", Script: "pint --test"}},
		"composer without":     {"test", map[string]string{"composer.json": `{"scripts": {"post-install-cmd": "x"}}`}, checks.Found{}},
		"PHPUnit":              {"test", map[string]string{"phpunit.xml.dist": ""}, checks.Found{Command: "vendor/bin/phpunit", File: "phpunit.xml.dist"}},
		"make":                 {"test", map[string]string{"Makefile": "all: x\n\ntest : x\n\tgo test\n"}, checks.Found{Command: "make test", File: "Makefile"}},
		"make, any name":       {"types", map[string]string{"Makefile": "types:"}, checks.Found{Command: "make types", File: "Makefile"}},
		"make, two targets":    {"lint", map[string]string{"Makefile": "test lint: x\n"}, checks.Found{Command: "make lint", File: "Makefile"}},
		"make, a double colon": {"test", map[string]string{"Makefile": "test:: x\n"}, checks.Found{Command: "make test", File: "Makefile"}},
		"make, a variable":     {"test", map[string]string{"Makefile": "test := x\n"}, checks.Found{}},
		"make, another one":    {"test", map[string]string{"Makefile": "test ::= x\n"}, checks.Found{}},
		"make, a value":        {"test", map[string]string{"Makefile": "x = test : y\n"}, checks.Found{}},
		"make, phony alone":    {"test", map[string]string{"Makefile": ".PHONY: test\n"}, checks.Found{}},
		"make, a recipe":       {"test", map[string]string{"Makefile": "all:\n\ttest : x\n"}, checks.Found{}},
		"make, a comment":      {"test", map[string]string{"Makefile": "# test : x\n"}, checks.Found{}},
		"make, a longer name":  {"test", map[string]string{"Makefile": "test-all:\nunit-test:\n"}, checks.Found{}},
		"make, a word":         {"test", map[string]string{"Makefile": "test\n"}, checks.Found{}},
		"nothing":              {"test", nil, checks.Found{}},
		"huge":                 {"test", map[string]string{"package.json": strings.Repeat("[", 1<<20), "Makefile": strings.Repeat("x:\n", 1<<18) + "test:\n"}, checks.Found{Command: "make test", File: "Makefile"}},
	} {
		read := func(file string) ([]byte, bool) {
			s, ok := c.files[file]
			return []byte(s), ok
		}
		got, ok := checks.Detect(c.check, checks.Folder{Read: read, List: func() []string { return slices.Sorted(maps.Keys(c.files)) }})
		if got != c.want || ok != (c.want != checks.Found{}) {
			t.Errorf("%s: %+v %t", name, got, ok)
		}
	}
}

// TestDetectedAreProtected: each file that chooses a command is one that decides what it says.
func TestDetectedAreProtected(t *testing.T) {
	p, err := checks.NewProtected(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"test", "lint"} {
		read := func(file string) ([]byte, bool) {
			if !strings.Contains(file, "lock") && (!p.Holds(file) || !p.Holds("a/b/"+file)) {
				t.Errorf("%s is not protected", file)
			}
			return nil, file == "package.json" // all are asked for
		}
		checks.Detect(name, checks.Folder{Read: read, List: func() []string { return []string{"a.sln", "a.slnx", "a.csproj"} }})
	}
}

func TestCountTests(t *testing.T) {
	for _, c := range []struct {
		path, content string
		want          int
	}{
		{"a_test.go", "func TestA(t *testing.T) {}\nfunc FuzzB(f *testing.F) {}\nfunc ExampleC() {}\nfunc BenchmarkD(b *testing.B) {}\n", 4},
		{"a_test.go", "func helpTest(t *testing.T) {}\n// func TestA(t *testing.T) {}\n\tfunc TestB(", 0},
		{"a.go", "func TestA(t *testing.T) {}\n", 0},
		{"dir/test_a.py", "def test_a():\nclass T:\n    async def test_b(self):\n    def testC(self):\n# def test_d():\ndef helper():\n", 3},
		{"src/lib.rs", "#[test]\nfn a() {}\n    #[tokio::test(flavor = \"x\")]\n#[cfg(test)]\n#[test_case(1)]\n// #[test]\n", 2},
		{"A.java", "  @Test\n  void a() {}\n  @ParameterizedTest\n  @TestFactory\n  // @Test\n", 2},
		{"A.kt", "@Test\nfun a() {}\n", 1},
		{"a_test.exs", "  test \"a\" do\n  tests \"b\"\n", 1},
		{"a_spec.rb", "  it 'a' do\n  specify \"b\" do\n  def test_c\n  xit 'd' do\n", 3},
		{"a.test.js", "it('a', f)\n  test(`b`, f)\n  it.skip('c', f)\n  xit('d', f)\n  test.each([1, 2])('e', f)\n  // it('f')\n  submit(x)\n", 3},
		{"a.jsx", "it('a')", 1}, {"a.mjs", "it('a')", 1}, {"a.cjs", "it('a')", 1}, {"a.ts", "it('a')", 1}, {"a.tsx", "it('a')", 1}, {"a.mts", "it('a')", 1},
		{"a.txt", "it('a')\nfunc TestA(", 0},
		{"a_test.go", "", 0},
		{"a_test.go", "\xff\xfe\nfunc TestA(\n\x00", 1},
		{"a_test.go", strings.Repeat("func TestA(\n", 100_000), 100_000},
	} {
		if got := checks.CountTests(c.path, []byte(c.content)); got != c.want {
			t.Errorf("%s: %d, want %d, in %.100q", c.path, got, c.want, c.content)
		}
	}
}

// TestProtected: tests, their configuration and CI files count always, and more where the
// settings say so.
func TestProtected(t *testing.T) {
	usual := []string{
		"a_test.go", "deep/er/a_test.go", "web/src/a.test.tsx", "a.spec.js", "test_a.py", "x/a_test.py", "conftest.py", "x/a_spec.rb",
		"test/a", "x/tests/deep/a.txt", "src/test/java/A.java", "x/__tests__/a.js", "x/__snapshots__/a", "testdata/a/b", "spec/a",
		"package.json", "web/package.json", "jest.config.ts", ".mocharc.json", "web/.eslintrc", "pyproject.toml", "x/Makefile", "sub/go.mod", ".golangci.yml",
		".github/workflows/ci.yml", ".gitlab-ci.yml", ".uwf/config.yaml", ".ci/run",
	}
	never := []string{"a.go", "src/contest.js", "latest/a.go", "x/.github/a", "package.json5", "testing/a.go", "README.md", ""}
	for name, c := range map[string]struct{ patterns, also, not []string }{
		"none":           {nil, nil, []string{"e2e/a.js", "x/schema.sql"}},
		"an empty list":  {[]string{}, nil, []string{"e2e/a.js"}},
		"more":           {[]string{"e2e/**", "*.sql"}, []string{"e2e/a.js", "e2e/deep/a.js", "x/schema.sql"}, []string{"x/e2e.js"}},
		"a folder":       {[]string{"e2e/"}, []string{"e2e/a.js", "x/e2e/deep/a.js"}, []string{"e2e", "e2e.js"}},
		"a plain name":   {[]string{"e2e"}, []string{"e2e", "e2e/deep/a.js"}, []string{"e2e.js"}},
		"from the top":   {[]string{"/e2e"}, []string{"e2e/a.js"}, []string{"x/e2e/a.js"}},
		"of its own":     {[]string{"e2e/*", "!e2e/README"}, []string{"e2e/a.js"}, []string{"e2e/README"}},
		"not the usual":  {[]string{"!*", "!package.json", "!a_test.go", "!.github/**"}, nil, []string{"x"}},
		"comments":       {[]string{"# e2e", "", "e2e"}, []string{"e2e/a"}, []string{"# e2e"}},
		"lines in a one": {[]string{"e2e\n*.sql"}, []string{"e2e/a", "a.sql"}, nil},
	} {
		p, err := checks.NewProtected(c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(usual, c.also...) {
			if !p.Holds(path) {
				t.Errorf("%s: %s is not protected", name, path)
			}
		}
		for _, path := range append(never, c.not...) {
			if p.Holds(path) {
				t.Errorf("%s: %s is protected", name, path)
			}
		}
	}
}

// TestProtectedTakesTooLong: patterns that nobody can compare are refused, or hold everything.
func TestProtectedTakesTooLong(t *testing.T) {
	if _, err := checks.NewProtected([]string{strings.Repeat("x", 100_000_001)}); err == nil {
		t.Error("a pattern that takes too long to read is taken")
	}
	p, err := checks.NewProtected(strings.Split(strings.Repeat("*x*z ", 60_000), " "))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Holds(strings.Repeat("y", 4_000) + "z") {
		t.Error("what takes too long to tell is not protected")
	}
}

func TestCanHoldTests(t *testing.T) {
	for path, want := range map[string]bool{"a_test.go": true, "a.go": false, "src/a.rs": true, "a.test.ts": true, "README.md": false, "": false} {
		if checks.CanHoldTests(path) != want {
			t.Errorf("%s: not %t", path, want)
		}
	}
}
