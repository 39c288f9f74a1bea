package initialize

import (
	"fmt"
	"io/fs"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/config/edit"
	"github.com/united-workforce/uwf/examples"
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
	usesLine     = "- uses: united-workforce/uwf@v1"
)

// hostLine is the action's variant that runs on the runner itself.
const hostLine = "- uses: united-workforce/uwf/.github/actions/host@v1 # on the runner, with its toolchains"

// workflowFile is the shipped workflow file with a repository's provider and secret, in
// the container or on the runner itself.
func workflowFile(shipped, provider, secret string, host bool) ([]byte, error) {
	data, err := fs.ReadFile(examples.Files, shipped)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSpace(line)
		indent := line[:strings.Index(line+"x", text)]
		switch text {
		case providerLine:
			line = indent + "provider: " + provider + "\n"
		case keyLine:
			line = indent + "api-key: ${{ secrets." + secret + " }}\n"
			if secret == "" {
				line = ""
			}
		case modelsLine:
			line = ""
			if provider == githubModels {
				line = indent + "models: read # GitHub Models, with the job's own token\n"
			}
		case usesLine:
			if host {
				line = indent + hostLine + "\n"
			}
		default:
			out.WriteString(line)
			continue
		}
		seen[text] = true
		out.WriteString(line)
	}
	for _, l := range []string{providerLine, keyLine, modelsLine, usesLine} {
		if !seen[l] {
			return nil, fmt.Errorf("the shipped %s has no line %q: this build of uwf is broken", shipped, l)
		}
	}
	return []byte(out.String()), nil
}

// configHead stands above settings that are written anew.
const configHead = `# Settings of uwf for this repository; jobs read them from the default branch.
# See them all: uwf config show. Check them: uwf config validate.
# No key belongs here: apiKeyEnv is the name of a variable, which a secret of the
# repository fills in jobs.
`

// settings are the repository's settings with the answers in them. What old says of
// other things stays as it is.
func settings(old []byte, remote string, a setup.Answers) ([]byte, error) {
	if len(old) == 0 {
		old = []byte(configHead)
	}
	changes := append([]edit.Change{{
		Path: []string{"state", "remote"}, Value: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: remote},
	}}, a.Changes()...)
	return edit.Apply(old, changes...)
}
