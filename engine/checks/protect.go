package checks

import (
	"strings"

	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// protected are patterns, as in .gitignore, of the files that decide what checks say,
// wherever the settings name none: tests, their configuration, what CI does.
var protected = [...]string{
	"*_test.go", "*.test.*", "*.spec.*", "test_*.py", "*_test.py", "conftest.py", "*_test.exs", "*_spec.rb",
	"**/test/**", "**/tests/**", "**/spec/**", "**/__tests__/**", "**/__snapshots__/**", "**/testdata/**",
	"package.json", "jest.config.*", "vitest.config.*", "karma.conf.*", ".mocharc*", "playwright.config.*", "cypress.config.*", ".eslintrc*", "eslint.config.*", "biome.json",
	"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc", "ruff.toml",
	"Makefile", "Cargo.toml", ".golangci.*", "pom.xml", "build.gradle", "build.gradle.kts", "gradlew",
	"/.github/**", "/.gitlab-ci.yml", "/.gitea/**", "/.forgejo/**", "/.circleci/**", "/.uwf/**", "/.ci/**",
}

// Protected says whether a file of a repository, by its path from the top with slashes, is
// one of those that decide what checks say. Patterns are as in .gitignore; nil: tests, their
// configuration and CI files.
type Protected struct{ rules *ignore.Rules }

// patternSteps bounds the work of comparing paths with patterns.
const patternSteps = 100_000_000

// NewProtected reads patterns.
func NewProtected(patterns []string) (Protected, error) {
	if patterns == nil {
		patterns = protected[:]
	}
	rules, err := ignore.New(patternSteps).Folder("", []byte(strings.Join(patterns, "\n")))
	return Protected{rules}, err
}

// Holds reports whether a file is protected. Where it takes too long to tell, it is.
func (p Protected) Holds(path string) bool {
	ignored, err := p.rules.Ignored(path, false)
	return err != nil || ignored
}
