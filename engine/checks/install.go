package checks

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// tool installs what a lock file names.
type tool struct {
	family string // one tool of a family installs: the first whose lock file is there
	lock   string
	says   string // what that file contains; empty: anything
	run    string // what runs a script of package.json, unless npm does
	// safe is the command that runs no install scripts, if there is one beside whole.
	safe, whole string
}

// installsPip makes a venv, which git ignores on every version of Python.
const installsPip = "python3 -m venv .venv && echo '*' > .venv/.gitignore && .venv/bin/pip install "

// installsGems keeps gems in the tree, since agents get another HOME than the command.
const installsGems = "bundle config set --local path vendor/bundle && BUNDLE_FROZEN=true bundle install && for d in .bundle vendor/bundle; do echo '*' > $d/.gitignore; done"

// tools need a command before tests can run. Those of Go, Maven and Gradle fetch what they need
// when they run.
var tools = [...]tool{
	{"node", "pnpm-lock.yaml", "", "pnpm", "pnpm install --frozen-lockfile --ignore-scripts", "pnpm install --frozen-lockfile"},
	{"node", "yarn.lock", "__metadata:", "yarn", "yarn install --immutable --mode=skip-build", "yarn install --immutable"},
	{"node", "yarn.lock", "", "yarn", "yarn install --frozen-lockfile --ignore-scripts", "yarn install --frozen-lockfile"},
	{"node", "bun.lock", "", "bun", "bun install --frozen-lockfile --ignore-scripts", "bun install --frozen-lockfile"},
	{"node", "bun.lockb", "", "bun", "bun install --frozen-lockfile --ignore-scripts", "bun install --frozen-lockfile"},
	{"node", "package-lock.json", "", "", "npm ci --ignore-scripts", "npm ci"},
	{"node", "npm-shrinkwrap.json", "", "", "npm ci --ignore-scripts", "npm ci"},
	{"deno", "deno.lock", "", "", "", "deno install --frozen"},
	{"python", "uv.lock", "", "", "", "uv sync --frozen"},
	{"python", "poetry.lock", "", "", "", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction"},
	{"python", "Pipfile.lock", "", "", "", "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev"},
	{"python", "requirements.txt", "", "", installsPip + "--only-binary :all: -r requirements.txt", installsPip + "-r requirements.txt"},
	{"ruby", "Gemfile.lock", "", "", "", installsGems},
	{"php", "composer.lock", "", "", "composer install --no-interaction --no-scripts --no-plugins", "composer install --no-interaction"},
	{"rust", "Cargo.lock", "", "", "", "cargo fetch --locked"},
	{"elixir", "mix.lock", "", "", "", "mix local.hex --force --if-missing && mix deps.get --check-locked"},
}

// Install is what installs what the lock files of a folder name.
type Install struct {
	Locks []string // the files
	// Safe are the commands that run no install scripts of packages, Whole those that do. They
	// are equal if the tools have one command only.
	Safe, Whole []string
}

// FindInstall finds by the files of a folder what has to be installed before tests can run; read is
// as for [Detect].
func FindInstall(read func(file string) ([]byte, bool)) (out Install, ok bool) {
	done := map[string]bool{}
	for _, t := range tools {
		b, there := read(t.lock)
		if !there || done[t.family] || !strings.Contains(string(b), t.says) {
			continue
		}
		done[t.family] = true
		safe := t.safe
		if safe == "" {
			safe = t.whole
		}
		out.Locks, out.Safe, out.Whole = append(out.Locks, t.lock), append(out.Safe, safe), append(out.Whole, t.whole)
	}
	return out, len(done) > 0
}

// Manifests are the names of the files that say what is to be installed, and by which tools.
func Manifests() []string {
	out := []string{
		"package.json", "pnpm-workspace.yaml", ".npmrc", ".yarnrc.yml", ".nvmrc", ".node-version",
		"go.mod", "go.sum", "go.work", "go.work.sum", "Cargo.toml", "rust-toolchain", "rust-toolchain.toml",
		"requirements-dev.txt", "constraints.txt", "pyproject.toml", "pdm.lock", "Pipfile", "setup.py", "setup.cfg", ".python-version",
		"Gemfile", ".ruby-version", "composer.json", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile",
		"mix.exs", "deno.json", ".tool-versions", "mise.toml", ".sdkmanrc",
	}
	return append(out, lists.Map(tools[:], func(t tool) string { return t.lock })...)
}
