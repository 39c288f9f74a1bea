package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// checkOnline are the checks that ask somebody.
func (e *examination) checkOnline(ctx context.Context) {
	if !e.checkRepository(ctx) {
		return
	}
	e.checkForge(ctx)
	e.checkPush(ctx)
	e.checkModel(ctx)
}

// checkRepository is whether there is one with a commit; nothing else can be said of an
// empty one.
func (e *examination) checkRepository(ctx context.Context) bool {
	const check = "repository"
	if e.o.Remote == nil {
		e.addFinding(check, true, Missing, e.o.NoRemote, fmt.Sprintf("git remote add %s URL", e.o.RemoteName))
		return true
	}
	l, err := e.o.Remote.List(ctx, "HEAD", "refs/heads/")
	switch {
	case err != nil:
		e.addFinding(check, true, stateOf(err), fmt.Sprintf("the refs of %s can't be read: %v", e.o.Remote.URL(), err), remoteFix(err))
	case len(l.Refs) == 0 || !slices.ContainsFunc(sortedKeys(l.Refs), func(ref string) bool { return ref != "refs/heads/"+e.o.Branch }):
		e.addFinding(check, true, Missing, fmt.Sprintf("%s has no commits: jobs run workflow files of the default branch, and there is none", e.o.Remote.URL()), "commit something, and git push -u "+e.o.RemoteName+" HEAD")
		return false
	case l.Refs["refs/heads/"+e.o.Branch].IsZero():
		e.addOK(check, fmt.Sprintf("%s can be read; the first thread makes the branch %s", e.o.Remote.URL(), e.o.Branch))
	default:
		e.addOK(check, fmt.Sprintf("%s can be read, and has the branch %s", e.o.Remote.URL(), e.o.Branch))
	}
	return true
}

func sortedKeys(m map[string]wire.ID) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

// stateOf tells a refusal, which something mends, from what may pass.
func stateOf(err error) State {
	if errors.Is(err, wire.ErrDenied) || errors.Is(err, wire.ErrProtected) || errors.Is(err, wire.ErrNotFound) ||
		errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrAuth) || errors.Is(err, forge.ErrNotFound) {
		return Missing
	}
	return Unknown
}

func remoteFix(err error) string {
	switch {
	case errors.Is(err, wire.ErrDenied), errors.Is(err, wire.ErrNotFound):
		return "check the remote's address (git remote -v) and your credentials for it (gh auth login, or a token in GITHUB_TOKEN)"
	case errors.Is(err, wire.ErrUnreachable):
		return "check the network, then run it again"
	}
	return ""
}

// checkForge are the checks that ask the forge's API.
func (e *examination) checkForge(ctx context.Context) {
	f := e.o.Forge
	if f == nil {
		e.addFinding("token", false, Unknown, e.o.NoForge, e.o.ForgeFix)
		if e.o.Gitea {
			e.checkStarters(ctx, "its owner")
		}
		return
	}
	repo, err := f.Repository(ctx)
	if err != nil {
		e.addFinding("token", true, stateOf(err), err.Error(), e.tokenFix(err))
		return
	}
	if repo.Empty {
		e.addFinding("token", true, Missing, repo.FullName+" is empty: it has no default branch", "commit something, and git push -u "+e.o.RemoteName+" HEAD")
		return
	}
	if e.o.Server == "" {
		e.o.Server = repo.URL
	}
	e.addOK("token", fmt.Sprintf("%s answers; its default branch is %s", repo.FullName, repo.DefaultBranch))
	e.checkActive(ctx, repo.DefaultBranch)
	if f.Flavour() == forge.Gitea {
		owner, _, _ := strings.Cut(repo.FullName, "/")
		e.checkStarters(ctx, owner)
	}
	e.checkComments(ctx)
	e.checkLabels(ctx)
	e.checkRules(ctx)
	e.checkPulls(ctx)
	e.checkSecrets(ctx)
}

func (e *examination) tokenFix(err error) string {
	switch {
	case errors.Is(err, forge.ErrAuth):
		return "the token is wrong or has ended: make another, or log in again with gh auth login"
	case errors.Is(err, forge.ErrUnreachable), errors.Is(err, forge.ErrLimited):
		return "run it again later"
	}
	return "check the repository's name (git remote -v), and that the token may read it"
}

// checkActive is whether the forge runs the workflow file; that is what a dispatch needs
// beside the permission.
func (e *examination) checkActive(ctx context.Context, branch string) {
	const check = "dispatch"
	list, err := e.o.Forge.Workflows(ctx)
	if err != nil {
		e.addFinding(check, true, Unknown, err.Error(), "see "+e.settingsPage("actions"))
		return
	}
	name := e.o.Workflow
	if name == "" && e.flow != nil {
		name = path.Base(e.flow.path)
	}
	if name == "" {
		name = "uwf.yml"
	}
	i := slices.IndexFunc(list, func(w forge.Workflow) bool { return path.Base(w.Path) == name })
	switch {
	case i < 0:
		e.addFinding(check, true, Missing, fmt.Sprintf("%s is not on the branch %s, from which jobs are started", name, branch), fmt.Sprintf("git push %s HEAD:%s once the file is committed, or merge the branch that has it", e.o.RemoteName, branch))
	case !list[i].Active:
		e.addFinding(check, true, Missing, name+" is disabled", e.forgeCommand("gh workflow enable "+name, "actions/workflows/"+name, "actions?workflow="+name))
	default:
		e.addOK(check, fmt.Sprintf("%s is active on %s", name, branch))
	}
}

// checkComments reads some; the labels show whether they can be written.
func (e *examination) checkComments(ctx context.Context) {
	const check = "comments"
	number := max(e.o.Issue, 1)
	_, err := e.o.Forge.Comments(ctx, number)
	switch {
	case err == nil:
		e.addOK(check, "issues and their comments can be read")
	case errors.Is(err, forge.ErrNotFound) && e.o.Issue == 0:
		e.addFinding(check, true, Unknown, "there is no issue 1 whose comments could be read", "")
	default:
		e.addFinding(check, true, stateOf(err), err.Error(), e.rightFix("issues: write", "Issues: read and write"))
	}
}

// rightFix says how a token gets a right: a job's in its file, a person's own where
// it was made.
func (e *examination) rightFix(job, own string) string {
	if e.o.InJob {
		return "add " + job + " to permissions: of the job"
	}
	return "give your token the permission " + own
}

func (e *examination) checkLabels(ctx context.Context) {
	const check = "labels"
	labels := Labels(e.o.Label)
	var commands []string
	for _, l := range labels {
		commands = append(commands, fmt.Sprintf("gh label create %s --color %s", l.Name, l.Color))
	}
	byHand := e.forgeCommand(strings.Join(commands, "; "), "labels", "labels")
	if e.o.ReadOnly {
		e.addFinding(check, false, Unknown, "labels were not made, as you asked", byHand)
		return
	}
	for _, l := range labels {
		err := e.o.Forge.EnsureLabel(ctx, l)
		if err == nil {
			continue
		}
		fix := e.rightFix("issues: write", "Issues: read and write")
		if !e.o.InJob {
			fix += ", or make them: " + byHand
		}
		// Labels can be made by hand, but without the right a job can't comment.
		e.addFinding(check, e.o.InJob, stateOf(err), err.Error(), fix)
		return
	}
	e.addOK(check, fmt.Sprintf("there are %s, %s and %s, so issues can be written to", labels[0].Name, labels[1].Name, labels[2].Name))
}

// harmlessRules are rules that uwf's pushes meet: they never force and never delete what
// a rule could be for.
func harmlessRules() []string {
	return []string{"deletion", "non_fast_forward", "required_linear_history"}
}

// rulesPage is where branch rules are set.
func (e *examination) rulesPage() string {
	if e.o.Forge != nil && e.o.Forge.Flavour() == forge.Gitea {
		return e.settingsPage("settings/branches")
	}
	return e.settingsPage("settings/rules")
}

func (e *examination) checkRules(ctx context.Context) {
	const check = "rules"
	var found []string
	unknown := false
	for _, branch := range []string{e.o.Branch, "uwf/doctor"} {
		rules, known, err := e.o.Forge.BranchRules(ctx, branch)
		if err != nil {
			e.addFinding(check, true, Unknown, err.Error(), "see "+e.rulesPage())
			return
		}
		unknown = unknown || !known
		for _, r := range rules {
			if slices.Contains(harmlessRules(), r) {
				continue
			}
			name := e.o.Branch
			if branch != name {
				name = "uwf/*"
			}
			found = append(found, fmt.Sprintf("%s (%s)", strings.ReplaceAll(r, "_", " "), name))
		}
	}
	switch {
	case len(found) > 0:
		e.addFinding(check, true, Missing, "branch rules stand in the way of uwf's pushes: "+strings.Join(found, ", "),
			fmt.Sprintf("leave %s and uwf/** out of these rules, or let jobs (GitHub Actions) bypass them: %s", e.o.Branch, e.rulesPage()))
	case unknown:
		e.addFinding(check, false, Unknown, "no rule that this token may see stands in the way of uwf's pushes; those of branches that are not there yet, only an administrator may see all", fmt.Sprintf("see that no rule holds for %s and uwf/**: %s", e.o.Branch, e.rulesPage()))
	default:
		e.addOK(check, fmt.Sprintf("no branch rule stands in the way of %s and uwf/**", e.o.Branch))
	}
}

func (e *examination) checkPulls(ctx context.Context) {
	const check = "pull-requests"
	may, known, err := e.o.Forge.MayCreatePulls(ctx)
	fix := fmt.Sprintf(`tick "Allow GitHub Actions to create and approve pull requests" below Workflow permissions: %s`, e.settingsPage("settings/actions"))
	switch {
	case err != nil:
		e.addFinding(check, false, Unknown, err.Error(), fix)
	case !known:
		e.addFinding(check, false, Unknown, "this token can't read whether jobs may open pull requests; where they may not, uwf comments with a link that opens one", fix)
	case !may:
		e.addFinding(check, false, Missing, "jobs may not open pull requests: uwf comments with a link that opens one", fix)
	default:
		e.addOK(check, "jobs may open pull requests")
	}
}

// checkSecrets looks whether the secrets that the workflow file names are there. Their
// values can't be read by anybody.
func (e *examination) checkSecrets(ctx context.Context) {
	const check = "secrets"
	if e.flow == nil {
		return
	}
	want, literal := e.flow.secretNames()
	if literal {
		e.addFinding(check, true, Missing, e.flow.path+" holds a key instead of the name of a secret", "revoke that key now; then make a secret, and write api-key: ${{ secrets.NAME }}")
		return
	}
	if len(want) == 0 {
		return
	}
	command := e.forgeCommand("gh secret set "+want[0], "settings/secrets/actions", "settings/actions/secrets")
	lister, ok := e.o.Forge.(forge.Secrets)
	var have []string
	var err error
	known := false
	if ok {
		have, known, err = lister.Secrets(ctx)
	}
	for _, name := range want {
		switch {
		case slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, name) }):
		case err != nil || !known:
			e.addFinding(check, false, Unknown, "this token can't see whether there is a secret "+name, "if it is not there: "+command)
			return
		default:
			e.addFinding(check, true, Missing, fmt.Sprintf("there is no secret %s, which %s names", name, e.flow.path), command)
			return
		}
	}
	e.addOK(check, "there is the secret "+strings.Join(want, ", "))
}

// checkModel asks the model, where that is possible from here.
func (e *examination) checkModel(ctx context.Context) {
	const check = "model"
	if e.o.Model == nil {
		if e.o.NoModel != "" {
			e.addFinding(check, false, Unknown, e.o.NoModel, e.o.ModelFix)
		}
		return
	}
	err := e.o.Model(ctx)
	var fail *setup.Failure
	switch {
	case err == nil:
		e.addOK(check, "the model answers")
	case errors.As(err, &fail) && fail.Kind == setup.KindRate:
		e.addOK(check, fail.What+"; it was reached, and took the key")
	case errors.As(err, &fail) && slices.Contains([]string{setup.KindKey, setup.KindForbidden, setup.KindQuota, setup.KindModel, setup.KindPath, setup.KindAddress}, fail.Kind):
		e.addFinding(check, true, Missing, fail.What, fail.Do)
	case errors.As(err, &fail):
		e.addFinding(check, false, Unknown, fail.What, fail.Do)
	default:
		e.addFinding(check, false, Unknown, err.Error(), "")
	}
}

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
