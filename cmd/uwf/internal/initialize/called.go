package initialize

import (
	"io/fs"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// caller is the shipped file of a repository whose jobs are in a workflow elsewhere; usesCalled
// is its line that names that.
const caller = "github/caller.yml"

var usesCalled = lazyregexp.New(`(?m)^    uses: .*$`)

// calledPlace is a reusable workflow of a repository, as uses: of a job has it.
var calledPlace = lazyregexp.New(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/\.github/workflows/[A-Za-z0-9_.-]+\.ya?ml@[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// checkReusable finds what is wrong with the choice of a workflow elsewhere.
func (o *Options) checkReusable(where *place) error {
	switch {
	case o.Reusable == "":
		return nil
	case !calledPlace.MatchString(o.Reusable):
		return app.Usagef("--reusable: this is no reusable workflow: write OWNER/REPO/.github/workflows/FILE.yml@REF, such as acme/.github/.github/workflows/uwf.yml@main")
	case where.gitea:
		return app.Usagef("--reusable is for GitHub: nobody has tried it on Gitea; leave it out")
	case o.Provider == githubModels:
		return app.Usagef("--reusable hands on a key, and github-models has none: choose the provider that the organisation's workflow names")
	}
	return nil
}

// callerFile is the workflow file of a repository whose jobs are in a workflow elsewhere.
func callerFile(called, secret string) ([]byte, error) {
	data, err := fs.ReadFile(examples.Files, caller)
	if err != nil {
		return nil, err
	}
	text := usesCalled.ReplaceAllString(string(data), "    uses: "+called)
	return []byte(strings.Replace(text, "secrets.OPENAI_API_KEY", "secrets."+secret, 1)), nil
}
