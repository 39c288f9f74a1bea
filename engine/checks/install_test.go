package checks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/checks"
)

// TestFindInstall: one tool of a family installs, without install scripts where it can.
func TestFindInstall(t *testing.T) {
	for name, c := range map[string]struct {
		files       map[string]string
		locks       string
		safe, whole string
	}{
		"nothing":            {map[string]string{"go.mod": "", "go.sum": "", "pom.xml": ""}, "", "", ""},
		"pnpm before others": {map[string]string{"pnpm-lock.yaml": "", "yarn.lock": "", "package-lock.json": ""}, "pnpm-lock.yaml", "pnpm install --frozen-lockfile --ignore-scripts", "pnpm install --frozen-lockfile"},
		"yarn, classic":      {map[string]string{"yarn.lock": "# yarn lockfile v1\n"}, "yarn.lock", "yarn install --frozen-lockfile --ignore-scripts", "yarn install --frozen-lockfile"},
		"yarn, berry":        {map[string]string{"yarn.lock": "__metadata:\n  version: 8\n"}, "yarn.lock", "yarn install --immutable --mode=skip-build", "yarn install --immutable"},
		"npm":                {map[string]string{"package-lock.json": "{}"}, "package-lock.json", "npm ci --ignore-scripts", "npm ci"},
		"one command":        {map[string]string{"uv.lock": "", "requirements.txt": ""}, "uv.lock", "uv sync --frozen", "uv sync --frozen"},
		"two families":       {map[string]string{"bun.lock": "", "composer.lock": ""}, "bun.lock, composer.lock", "bun install --frozen-lockfile --ignore-scripts && composer install --no-interaction --no-scripts --no-plugins", "bun install --frozen-lockfile && composer install --no-interaction"},
	} {
		got, ok := checks.FindInstall(func(file string) ([]byte, bool) {
			s, ok := c.files[file]
			return []byte(s), ok
		})
		if ok != (c.locks != "") || strings.Join(got.Locks, ", ") != c.locks || strings.Join(got.Safe, " && ") != c.safe || strings.Join(got.Whole, " && ") != c.whole {
			t.Errorf("%s: %+v %t", name, got, ok)
		}
	}
}

// TestLocksAreManifests: each lock file that installs is part of an image's key.
func TestLocksAreManifests(t *testing.T) {
	names := checks.Manifests()
	checks.FindInstall(func(file string) ([]byte, bool) {
		if !slices.Contains(names, file) {
			t.Errorf("%s is no manifest", file)
		}
		return nil, false
	})
	for _, name := range []string{"package.json", "go.sum", "pyproject.toml", "Cargo.lock", "npm-shrinkwrap.json"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no manifest", name)
		}
	}
}
