package checks

import (
	"errors"
	"strings"

	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// protected are patterns, as in .gitignore, of the files that decide what checks say in any
// repository: tests, their configuration, what CI does.
var protected = [...]string{
	"*_test.go", "*.test.*", "*.spec.*", "test_*.py", "*_test.py", "conftest.py", "*_test.exs", "*_spec.rb",
	"**/test/**", "**/tests/**", "**/spec/**", "**/__tests__/**", "**/__snapshots__/**", "**/testdata/**",
	"package.json", "jest.config.*", "vitest.config.*", "karma.conf.*", ".mocharc*", "playwright.config.*", "cypress.config.*", ".eslintrc*", "eslint.config.*", "biome.json",
	".rspec", "Rakefile", "composer.json", "Directory.Build.props", "Directory.Packages.props", "*.sln", "*.slnx", "*.csproj", "phpunit.xml", "phpunit.xml.dist", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "ruff.toml",
	"Makefile", "go.mod", "go.work", "mix.exs", "deno.json", "deno.jsonc", "Cargo.toml", ".golangci.*", "pom.xml", "build.gradle", "build.gradle.kts", "gradlew",
	"/.github/**", "/.gitlab-ci.yml", "/.gitea/**", "/.forgejo/**", "/.circleci/**", "/.uwf/**", "/.ci/**",
}

// Protected says whether a file of a repository, by its path from the top with slashes, is
// one of those that decide what checks say.
type Protected struct{ usual, own *ignore.Rules }

// patternSteps bounds the work of comparing paths with patterns.
const patternSteps = 100_000_000

// NewProtected reads patterns, as in .gitignore, of files that count besides tests, their
// configuration and CI files: those count whatever is said here. An error is a
// *ignore.CostError.
func NewProtected(patterns []string) (Protected, error) {
	none := ignore.New(patternSteps)
	usual, uerr := none.Folder("", []byte(strings.Join(protected[:], "\n")))
	own, err := none.Folder("", []byte(strings.Join(patterns, "\n")))
	return Protected{usual, own}, errors.Join(uerr, err)
}

// Holds reports whether a file is protected, or a folder that it is in. Where it takes too
// long to tell, it is.
func (p Protected) Holds(path string) bool {
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != '/' {
			continue
		}
		for _, rules := range [...]*ignore.Rules{p.usual, p.own} {
			if ignored, err := rules.Ignored(path[:i], i < len(path)); err != nil || ignored {
				return true
			}
		}
	}
	return false
}
