package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
)

// checkStarters tells who may start and steer threads on a Gitea, where a job can't look up who may
// write: the owner who is a person, and whom the workflow file names. Where an organisation
// owns the repository and the file names nobody, every label is refused.
func (e *examination) checkStarters(ctx context.Context, owner string) {
	const check = "starters"
	if e.flow == nil {
		return // said before
	}
	names, ownToken := e.flow.namedStarters()
	if len(names) > 0 {
		e.addOK(check, fmt.Sprintf("%s names who may start and steer: %s", e.flow.path, strings.Join(names, ", ")))
		return
	}
	fix := fmt.Sprintf(`name who may, in %s, below with: of the step that uses uwf: allow: "alice bob"`, e.flow.path)
	if ownToken {
		e.addFinding(check, false, Unknown, e.flow.path+" gives uwf a token of its own: whether that can look up who may write is not known here", "where it can't, "+fix)
		return
	}
	organisation, known, err := e.askOwner(ctx)
	switch {
	case err != nil:
		e.addFinding(check, false, Unknown, err.Error(), fix)
	case !known:
		e.addFinding(check, false, Unknown, fmt.Sprintf("a job on Gitea can't look up who may write: %s may start and steer, if that is a person, and nobody at all, if it is an organisation", owner), fix)
	case organisation:
		e.addFinding(check, true, Missing, fmt.Sprintf("nobody may start or steer: a job on Gitea can't look up who may write, %s is an organisation, and %s names nobody", owner, e.flow.path), fix)
	default:
		e.addOK(check, fmt.Sprintf("%s may start and steer, and nobody else: a job on Gitea can't look up who may write; others are named in allow: of %s", owner, e.flow.path))
	}
}

// askOwner asks whether the repository is an organisation's; known is false where nobody can
// be asked.
func (e *examination) askOwner(ctx context.Context) (organisation, known bool, err error) {
	if asks, ok := e.o.Forge.(forge.Owners); ok {
		return asks.OwnedByOrganisation(ctx)
	}
	return false, false, nil
}

// namedStarters are the names that the file lets start and steer, and whether it gives the action
// another token than the job's.
func (f *flow) namedStarters() (names []string, ownToken bool) {
	for _, j := range f.Jobs {
		with, ok := j.actionStep()
		if !ok {
			continue
		}
		ownToken = ownToken || with["token"] != "" && !strings.Contains(with["token"], "github.token") && !strings.Contains(with["token"], "GITHUB_TOKEN")
		if allow := strings.TrimSpace(with["allow"]); strings.Contains(allow, "${{") {
			names = append(names, allow)
		} else {
			names = append(names, strings.FieldsFunc(allow, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' })...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), ownToken
}
