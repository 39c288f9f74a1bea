package forge

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// ruleJob is a job as the rules look at it.
type ruleJob struct {
	If          yaml.Node
	Uses        string // a workflow that is called, which bounds its jobs itself
	RunsOn      any    `yaml:"runs-on"`
	Timeout     any    `yaml:"timeout-minutes"`
	Permissions any
	Concurrency any
	Container   any
	Services    any
	Env         map[string]string
	Needs       any
	Steps       []ruleStep
}

type ruleStep struct {
	If   yaml.Node
	Uses string
	Run  string
	With map[string]string
}

// ruleFile is a workflow file as the rules look at it.
type ruleFile struct {
	Name        string
	On          yaml.Node
	Permissions any
	Concurrency any
	Env         map[string]string
	Jobs        map[string]ruleJob
	text        string
}

// workflowRules are those of zizmor (by its names), poutine and ghalint that apply to
// files like ours, and what each is called there. Not among them: what needs the network
// (impostor commits, known vulnerabilities), and that a secret should stand in an
// environment, which we cannot make in somebody's repository.
var workflowRules = map[string]func(f ruleFile) []string{
	"unpinned-uses": func(f ruleFile) (bad []string) {
		for line := range strings.Lines(f.text) {
			m := usesLine.FindStringSubmatch(line)
			if m != nil && !strings.HasPrefix(m[1], "united-workforce/uwf@v") && !strings.HasPrefix(m[1], "united-workforce/uwf/.github/actions/host@v") &&
				m[1] != "acme/.github/.github/workflows/uwf.yml@main" && // the organisation's own, as --reusable says it
				!pinnedUse.MatchString(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- "))) {
				bad = append(bad, m[1])
			}
		}
		return bad
	},
	"artipacked": func(f ruleFile) (bad []string) {
		return f.eachStep(func(_, uses, _ string, with map[string]string) bool {
			return strings.HasPrefix(uses, "actions/checkout@") && with["persist-credentials"] != "false"
		})
	},
	"dangerous-triggers":       func(f ruleFile) []string { return f.triggers("pull_request_target", "workflow_run") },
	"untrusted-checkout":       func(f ruleFile) []string { return f.checksOut("head", "merge_commit") },
	"excessive-permissions":    func(f ruleFile) []string { return f.grants() },
	"undocumented-permissions": func(f ruleFile) []string { return undocumented.FindAllString(f.text, -1) },
	"template-injection": func(f ruleFile) []string {
		return f.eachStep(func(_, _, run string, with map[string]string) bool {
			return strings.Contains(run, "${{") || strings.Contains(with["script"], "${{")
		})
	},
	"overprovisioned-secrets":      func(f ruleFile) []string { return anySecret.FindAllString(f.text, -1) },
	"secrets in a whole job's env": func(f ruleFile) []string { return f.sharedSecrets() },
	"insecure-commands":            func(f ruleFile) []string { return unsecure.FindAllString(f.text, -1) },
	// An agent's program, of one exact version, is what such a file is for.
	"adhoc-packages":    func(f ruleFile) []string { return adhoc.FindAllString(pinnedAgent.ReplaceAllString(f.text, ""), -1) },
	"bot-conditions":    func(f ruleFile) []string { return actorIs.FindAllString(f.text, -1) },
	"unsound-contains":  func(f ruleFile) []string { return containsLiteral.FindAllString(f.text, -1) },
	"unsound-condition": func(f ruleFile) []string { return f.unsoundConditions() },
	"self-hosted-runner": func(f ruleFile) []string {
		return f.eachJob(func(j ruleJob) bool { return strings.Contains(fmt.Sprint(j.RunsOn), "self-hosted") })
	},
	"hardcoded-container-credentials": func(f ruleFile) []string {
		return f.eachJob(func(j ruleJob) bool { return j.Container != nil || j.Services != nil })
	},
	// A job that needs another is bounded by that one. Our second job must not wait in a
	// group: what waits there is dropped when another comes, and it holds paid work.
	"concurrency-limits": func(f ruleFile) []string {
		return f.eachJob(func(j ruleJob) bool {
			return f.Concurrency == nil && j.Concurrency == nil && j.Needs == nil && j.Uses == ""
		})
	},
	"timeout": func(f ruleFile) []string {
		return f.eachJob(func(j ruleJob) bool { return j.Timeout == nil && j.Uses == "" })
	},
	"cache-poisoning": func(f ruleFile) []string {
		if !strings.Contains(f.text, "tags:") {
			return nil
		}
		return f.eachStep(func(_, uses, _ string, with map[string]string) bool {
			return strings.HasPrefix(uses, "actions/cache@") || strings.HasPrefix(uses, "actions/setup-") && with["cache"] != "false"
		})
	},
	"anonymous-definition": func(f ruleFile) []string {
		if f.Name == "" {
			return []string{"no name"}
		}
		return nil
	},
}

var (
	usesLine        = regexp.MustCompile(`^\s*(?:- )?uses:\s*(\S+)`)
	pinnedUse       = regexp.MustCompile(`^uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	undocumented    = regexp.MustCompile(`(?m)^ +[a-z-]+: write$`)
	anySecret       = regexp.MustCompile(`toJSON\(\s*secrets|fromJSON\(\s*secrets|secrets\[|secrets: inherit`)
	unsecure        = regexp.MustCompile(`ACTIONS_ALLOW_UNSECURE_COMMANDS|GITHUB_ENV|GITHUB_PATH`)
	adhoc           = regexp.MustCompile(`\b(?:pip3?|gem|npm|cargo|pnpm|yarn)\s+(?:install|add)\b`)
	pinnedAgent     = regexp.MustCompile(`(?m)^ +- run: npm install -g [@\w./-]+@\d+\.\d+\.\d+ # .*, of the version that uwf was tried with$`)
	actorIs         = regexp.MustCompile(`github\.(?:actor|triggering_actor)\s*[!=]=`)
	containsLiteral = regexp.MustCompile(`contains\(\s*'`)
	writeAll        = regexp.MustCompile(`write`)
)

func (f ruleFile) eachJob(wrong func(ruleJob) bool) (bad []string) {
	for id, j := range f.Jobs {
		if wrong(j) {
			bad = append(bad, id)
		}
	}
	return bad
}

func (f ruleFile) eachStep(wrong func(job, uses, run string, with map[string]string) bool) (bad []string) {
	for id, j := range f.Jobs {
		for n, s := range j.Steps {
			if wrong(id, s.Uses, s.Run, s.With) {
				bad = append(bad, fmt.Sprintf("%s, step %d", id, n+1))
			}
		}
	}
	return bad
}

func (f ruleFile) triggers(names ...string) (bad []string) {
	for n := range nodesOf(&f.On) {
		if slices.Contains(names, n) {
			bad = append(bad, n)
		}
	}
	return bad
}

func (f ruleFile) checksOut(words ...string) []string {
	return f.eachStep(func(_, uses, _ string, with map[string]string) bool {
		return strings.HasPrefix(uses, "actions/checkout@") && slices.ContainsFunc(words, func(w string) bool {
			return strings.Contains(with["ref"]+with["repository"], w)
		})
	})
}

// grants are rights that all jobs have, or that a job has without naming them.
func (f ruleFile) grants() (bad []string) {
	if f.Permissions == nil || writeAll.MatchString(fmt.Sprint(f.Permissions)) {
		bad = append(bad, fmt.Sprintf("for all jobs: %v", f.Permissions))
	}
	return append(bad, f.eachJob(func(j ruleJob) bool { _, all := j.Permissions.(string); return all })...)
}

func (f ruleFile) sharedSecrets() (bad []string) {
	for k, v := range f.Env {
		if strings.Contains(v, "secrets.") || strings.Contains(v, "github.token") {
			bad = append(bad, k)
		}
	}
	return append(bad, f.eachJob(func(j ruleJob) bool {
		return slices.ContainsFunc(mapValues(j.Env), func(v string) bool {
			return strings.Contains(v, "secrets.") || strings.Contains(v, "github.token")
		})
	})...)
}

// unsoundConditions are those with an expression inside of text, such as a line break
// behind it: they are always true.
func (f ruleFile) unsoundConditions() (bad []string) {
	wrong := func(n yaml.Node) bool {
		text := n.Value
		return strings.Contains(text, "${{") && (text != strings.TrimSpace(text) || !strings.HasPrefix(text, "${{") || !strings.HasSuffix(text, "}}")) ||
			strings.HasSuffix(text, "\n")
	}
	for id, j := range f.Jobs {
		if wrong(j.If) || slices.ContainsFunc(j.Steps, func(s ruleStep) bool { return wrong(s.If) }) {
			bad = append(bad, id)
		}
	}
	return bad
}

func mapValues(m map[string]string) (out []string) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// nodesOf are the names of a mapping's keys or a list's items.
func nodesOf(n *yaml.Node) map[string]bool {
	out := map[string]bool{n.Value: true}
	for _, c := range n.Content {
		out[c.Value] = true
	}
	return out
}

func readRuleFile(text string) (f ruleFile, err error) {
	err = yaml.Unmarshal([]byte(text), &f)
	f.text = text
	return f, err
}

// TestWorkflowRules: the workflow files that we ship, that uwf init writes, and our own
// keep the rules of those who check workflow files for holes.
func TestWorkflowRules(t *testing.T) {
	n := 0
	for _, pattern := range []string{"../../../../examples/github/*.yml", "../../../../.github/workflows/*.yml", "../../internal/initialize/testdata/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := readRuleFile(string(raw))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			n++
			for rule, check := range workflowRules {
				if bad := check(f); len(bad) > 0 {
					t.Errorf("%s: %s: %q", filepath.Base(name), rule, bad)
				}
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d files were checked", n)
	}
}

// Each rule finds what it is for, and only that, in a file that keeps all others.
func TestWorkflowRulesFind(t *testing.T) {
	const good = `name: x
on: [push]
permissions: {}
jobs:
  a:
    runs-on: ubuntu-latest
    timeout-minutes: 5
    concurrency: a
    permissions:
      contents: write # the tag
    steps:
      - uses: actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8 # v6.0.1
        with:
          persist-credentials: false
      - run: make
`
	for rule, change := range map[string][2]string{
		"unpinned-uses":                   {"8e8c483db84b4bee98b60c0593521ed34d9990e8 # v6.0.1", "v6"},
		"artipacked":                      {"persist-credentials: false", "fetch-depth: 0"},
		"dangerous-triggers":              {"on: [push]", "on: {pull_request_target: {}}"},
		"untrusted-checkout":              {"persist-credentials: false", "persist-credentials: false\n          ref: ${{ github.head_ref }}"},
		"excessive-permissions":           {"permissions: {}", "permissions: {contents: write}"},
		"undocumented-permissions":        {" # the tag", ""},
		"template-injection":              {"run: make", "run: echo ${{ github.event.issue.title }}"},
		"overprovisioned-secrets":         {"run: make", "run: make\n        env: {ALL: \"${{ toJSON(secrets) }}\"}"},
		"secrets in a whole job's env":    {"permissions: {}", "permissions: {}\nenv: {KEY: \"${{ secrets.KEY }}\"}"},
		"insecure-commands":               {"run: make", "run: echo x >>\"$GITHUB_ENV\""},
		"adhoc-packages":                  {"run: make", "run: npm install left-pad"},
		"bot-conditions":                  {"run: make", "run: make\n        if: github.actor == 'dependabot[bot]'"},
		"unsound-contains":                {"run: make", "run: make\n        if: contains('main next', github.ref_name)"},
		"unsound-condition":               {"run: make", "run: make\n        if: |\n          ${{ false }}\n"},
		"self-hosted-runner":              {"ubuntu-latest", "[self-hosted, linux]"},
		"hardcoded-container-credentials": {"concurrency: a", "concurrency: a\n    container: {image: x, credentials: {username: u, password: p}}"},
		"concurrency-limits":              {"    concurrency: a\n", ""},
		"timeout":                         {"    timeout-minutes: 5\n", ""},
		"cache-poisoning":                 {"on: [push]", "on: {push: {tags: [v1]}}"},
		"anonymous-definition":            {"name: x\n", ""},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if rule == "cache-poisoning" {
			text = strings.Replace(text, "- run: make", "- uses: actions/setup-go@4dc6199c7b1a012772edbd06daecab0f50c9053c # v6.1.0", 1)
		}
		f, err := readRuleFile(text)
		if err != nil || text == good {
			t.Fatalf("%s: %v", rule, err)
		}
		for other, check := range workflowRules {
			if bad := check(f); (len(bad) > 0) != (other == rule) {
				t.Errorf("a file against %s: %s finds %q", rule, other, bad)
			}
		}
	}
	if f, err := readRuleFile(good); err != nil || len(workflowRules) != 20 {
		t.Errorf("%d rules: %v, %v", len(workflowRules), f, err)
	}
}
