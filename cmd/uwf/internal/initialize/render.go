package initialize

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/config/edit"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/internal/lists"
)

// githubModels is the provider that a job's own token is the key of.
const githubModels = "github-models"

// The shipped files, in package examples.
const (
	oneJob     = "github/uwf.yml"
	twoJobs    = "github/two-jobs.yml"
	solveIssue = "solve-issue.yaml"
)

// The lines of the shipped workflow files that differ from one repository to the
// next, without what they are indented by.
const (
	providerLine = "provider: openai"
	keyLine      = "api-key: ${{ secrets.OPENAI_API_KEY }}"
	modelsLine   = "# models: read # for provider: github-models"
	installLine  = "# An agent that runs a program of somebody else's needs it here: uwf init --agent NAME."
	usesLine     = "- uses: united-workforce/uwf@v1"
	allowLine    = "# allow: alice bob # on Gitea: who may start and steer, beside the owner of a personal repository"
)

// hostLine is the action's variant that runs on the runner itself.
const hostLine = "- uses: united-workforce/uwf/.github/actions/host@v1 # on the runner; what is prepared lasts if UWF_HOME in env is a folder that does"

// setupNode is the action that brings the Node.js which all of the agents' packages run on: an
// older one makes npm install an older version of some, without a word.
const setupNode = "actions/setup-node@395ad3262231945c25e8478fd5baf05154b1d79f # v6.1.0"

// installSteps are the steps that install an agent's program, of the version that was tried last.
// The job has no secret in its environment then.
func installSteps(c cli.CLI) string {
	return strings.Join([]string{
		"- uses: " + setupNode, "  with:", `    node-version: "22"`,
		"- run: " + c.Install() + " # " + c.Title + ", of the version that uwf was tried with",
	}, "\n")
}

// ownLines are what a repository has in their place.
type ownLines struct {
	provider, secret string
	host             bool // on the runner itself, and not in the container
	gitea            bool
	allow            []string
	install          string // steps that install the agent's program; empty: it is a part of uwf
}

// replaceLines is what stands in the place of each of the shipped lines, without its indent;
// empty: nothing.
func (l ownLines) replaceLines() map[string]string {
	out := map[string]string{providerLine: "provider: " + l.provider, keyLine: "", modelsLine: "", usesLine: usesLine, allowLine: l.allowLineFor(), installLine: l.install}
	if l.secret != "" {
		out[keyLine] = "api-key: ${{ secrets." + l.secret + " }}"
	}
	if l.provider == githubModels {
		out[modelsLine] = "models: read # GitHub Models, with the job's own token"
	}
	if l.host {
		out[usesLine] = hostLine
	}
	return out
}

// allowLineFor is the line that names who may start and steer. On Gitea it is there, as a
// comment, also where nobody is named.
func (l ownLines) allowLineFor() string {
	const why = " # who may start and steer, beside the owner of a personal repository: a job can't look it up"
	switch names := strings.Join(l.allow, " "); {
	case names != "" && l.gitea:
		return fmt.Sprintf("allow: %q%s", names, why)
	case names != "":
		return fmt.Sprintf("allow: %q # bots that may start and steer", names)
	case l.gitea:
		return "# allow: alice bob" + why
	}
	return ""
}

// The shipped condition on a new label, and Gitea's, which names it in another place. GitHub's
// editors mark that place as unknown, so the shipped files don't have it.
const (
	labelCondition      = "github.event.label.name == 'uwf'"
	giteaLabelCondition = "(" + labelCondition + " || contains(github.event.changes.added_labels.*.name, 'uwf'))"
)

// githubOnlyParts are the parts of the shipped workflow files that only GitHub can do, by how
// they begin and what follows them: Gitea refuses the artifact actions as of version 4, and
// cancels with a run the jobs that would look after it.
func githubOnlyParts() [][2]string {
	return [][2]string{
		{"      # A finished step that no push took", "\n  # A job above died"},
		{"      - uses: actions/download-artifact@37930b1c2abaa49bbe596cd826c3c89aef350131 # v7.0.0\n        continue-on-error: true", "      " + usesLine},
		{"\n  # A person cancelled the run", ""},
	}
}

// leaveOut takes parts out of a shipped file.
func leaveOut(text string, parts [][2]string) (string, error) {
	for _, p := range parts {
		before, rest, found := strings.Cut(text, p[0])
		at := len(rest)
		if p[1] != "" {
			at = strings.Index(rest, p[1])
		}
		if !found || at < 0 {
			return "", fmt.Errorf("the shipped workflow file has no part that begins with %q: this build of uwf is broken", p[0])
		}
		text = before + rest[at:]
	}
	return text, nil
}

// workflowFile is the shipped workflow file with a repository's own lines.
func workflowFile(shipped string, own ownLines) ([]byte, error) {
	data, err := fs.ReadFile(examples.Files, shipped)
	if err != nil {
		return nil, err
	}
	text := string(data)
	if own.gitea {
		if text, err = leaveOut(text, githubOnlyParts()); err != nil {
			return nil, err
		}
		text = strings.Replace(text, labelCondition, giteaLabelCondition, 1)
	}
	for line, to := range own.replaceLines() {
		is := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(line) + `\n`)
		if !is.MatchString(text) {
			return nil, fmt.Errorf("the shipped %s has no line %q: this build of uwf is broken", shipped, line)
		}
		if to != "" {
			to = "${1}" + strings.ReplaceAll(strings.ReplaceAll(to, "$", "$$"), "\n", "\n${1}") + "\n"
		}
		text = is.ReplaceAllString(text, to)
	}
	return []byte(text), nil
}

// configHead stands above settings that are written anew.
const configHead = `# Settings of uwf for this repository; jobs read them from the default branch.
# See them all: uwf config show. Check them: uwf config validate.
# No key belongs here: apiKeyEnv is the name of a variable, which a secret of the
# repository fills in jobs.
`

// renderSettings are the repository's settings with the answers in them, and with the commands that
// prepare a workspace if there are any. What old says of other things stays as it is.
func renderSettings(old []byte, remote string, a setup.Answers, prepares []string) ([]byte, error) {
	if len(old) == 0 {
		old = []byte(configHead)
	}
	scalar := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	changes := []edit.Change{{Path: []string{"state", "remote"}, Value: scalar(remote)}}
	if len(prepares) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: lists.Map(prepares, scalar)}
		changes = append(changes, edit.Change{Path: []string{"workspace", "prepare"}, Value: list, Keep: true})
	}
	text, err := edit.Apply(old, changes...)
	if err != nil {
		return nil, err
	}
	return a.Apply(text, false)
}
