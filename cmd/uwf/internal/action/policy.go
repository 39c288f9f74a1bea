package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

// policyInput is the input policy: the text itself, or where it is kept. The zero value: there
// is none.
type policyInput struct {
	Text string
	// Repository is owner/name, Path has slashes, Commit is a whole hash.
	Repository, Path, Commit string
}

var (
	policyPlace = lazyregexp.New(`^([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/([^@]+)@(.*)$`)
	wholeCommit = lazyregexp.New(`^[0-9a-f]{40}$`)
)

// parsePolicy tells a place from a text, in which there is a space, a colon or a line's end.
func parsePolicy(s string) (p policyInput, err error) {
	if strings.ContainsAny(s, " \t\r\n:") {
		return policyInput{Text: s}, nil
	}
	m := policyPlace.FindStringSubmatch(s)
	switch {
	case m == nil || !isPath(m[2]):
		return p, errors.New("write the policy itself, or where it is kept: OWNER/REPO/PATH@COMMIT")
	case !wholeCommit.MatchString(m[3]):
		return p, errors.New("write all 40 digits of a commit behind the @: what a branch, a tag or a part of a hash leads to may change, and with it what is allowed here")
	}
	return policyInput{Repository: m[1], Path: m[2], Commit: m[3]}, nil
}

// name is what the policy is called in messages.
func (p policyInput) name() string {
	if p.Commit == "" {
		return "the input policy"
	}
	return p.Repository + "/" + p.Path + "@" + p.Commit
}

// read is the policy's text; nil: there is none. One that can't be had is an error: nothing
// is done without it. o is how the forge is reached.
func (p policyInput) read(ctx context.Context, o forge.Options) ([]byte, error) {
	switch {
	case p.Text != "":
		return []byte(p.Text), nil
	case p.Commit == "":
		return nil, nil
	}
	o.Repository = p.Repository
	f, err := forge.New(o)
	if err != nil {
		return nil, err
	}
	files, ok := f.(forge.FileReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	data, err := files.ReadFile(ctx, p.Path, p.Commit, config.MaxPolicy)
	if err != nil {
		err = fmt.Errorf("the organisation's policy can't be had, and nothing is done without it: %w", err)
	}
	if forge.IsRefused(err) {
		return nil, &app.UsageError{Err: fmt.Errorf("%w; see that the input policy names a file of a public repository, and a commit that has it", err)}
	}
	return data, err
}

// applyPolicy tells what the policy holds of what the repository and the workflow file ask for, and
// refuses a job that runs agents where the settings name one, or a model, that is not allowed:
// before any thread is started.
func (j *job) applyPolicy(c *config.Config) error {
	inBranch := strings.NewReplacer(j.definitionsPath()+"/", "") // people know its files by their places there
	for _, held := range c.Policies.Held() {
		j.log.Warning(inBranch.Replace(held))
	}
	asked := config.Config{Sandbox: j.in.Sandbox, Limits: config.Limits{StepTime: j.in.Timeout, Limits: moderator.Limits{MaxSteps: j.in.MaxSteps}}}
	if err := c.Policies.CheckChosen(asked); err != nil {
		j.log.Warning("the action's inputs ask for " + err.Error() + ", which holds")
	}
	if !ci.RunsAgents(j.in.Command) {
		return nil
	}

	if j.in.Agent != "" {
		a, err := c.ParseAgent(j.in.Agent)
		if err == nil {
			err = c.Policies.CheckAgent(a)
		}
		if err != nil {
			return app.Usagef("the input agent: %w", err)
		}
	}

	refused := c.Policies.Refusals()
	if len(refused) == 0 {
		return nil
	}
	lines := lists.Map(refused, func(r config.Problem) string { return inBranch.Replace(r.String()) })
	return app.Usagef("%s", strings.Join(lines, "\n"))
}
