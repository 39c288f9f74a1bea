package doctor

import (
	"cmp"
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
	found, empty := e.checkRepository(ctx)
	e.addFindings("repository", found)
	if empty {
		return
	}
	names := e.checkNames()
	e.addFindings("branches", names)
	e.checkForge(ctx)
	if e.o.Remote != nil {
		found, most := e.checkPush(ctx)
		e.addFindings("push", found)
		e.addFindings("refs", e.checkRefs(ctx, most)...)
		if names.State == "" {
			e.addFindings("branches", e.checkWork(ctx, most))
		}
	}
	e.addFindings("model", e.checkModel(ctx))
}

// checkRepository is whether there is one with a commit; nothing else can be said of an
// empty one.
func (e *examination) checkRepository(ctx context.Context) (found Finding, empty bool) {
	if e.o.Remote == nil {
		return findMissing(e.o.NoRemote, "git remote add "+e.o.RemoteName+" URL"), false
	}
	l, err := e.o.Remote.List(ctx, "HEAD", "refs/heads/")
	if err != nil {
		return findRefused(fmt.Errorf("the refs of %s can't be read: %w", e.o.Remote.URL(), err), remoteFix(err)), false
	}
	e.listed = l.Refs
	tip, there := l.Refs["refs/heads/"+e.o.Branch]
	switch {
	case len(l.Refs) == 0 || len(l.Refs) == 1 && there:
		return findMissing(e.o.Remote.URL()+" has no commits: jobs run workflow files of the default branch, and there is none", "commit something, and git push -u "+e.o.RemoteName+" HEAD"), true
	case tip.IsZero():
		return findOK("%s can be read; the first thread makes the branch %s", e.o.Remote.URL(), e.o.Branch), false
	}
	whole := ""
	if l.WholeOnly {
		whole = "; it speaks git's protocol 0, so ended threads are read with the whole history of a branch: AcceptEnv GIT_PROTOCOL in its sshd_config makes that quicker"
	}
	return findOK("%s can be read, and has the branch %s%s", e.o.Remote.URL(), e.o.Branch, whole), false
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
	if e.o.Other != "" {
		e.addFindings("forge", findOK("%s is on %s: %s", e.o.RemoteName, e.o.Other, OnOther))
		return
	}
	if e.o.Forge == nil {
		e.addFindings("token", findUnknown(false, e.o.NoForge, e.o.ForgeFix))
		if e.o.Gitea {
			e.addFindings("starters", e.checkStarters(ctx, "its owner"))
		}
		return
	}
	repo, err := e.o.Forge.ReadRepository(ctx)
	if err != nil {
		e.addFindings("token", findRefused(err, tokenFix(err)))
		return
	}
	if repo.Empty {
		e.addFindings("token", findMissing(repo.FullName+" is empty: it has no default branch", "commit something, and git push -u "+e.o.RemoteName+" HEAD"))
		return
	}
	e.o.Server = cmp.Or(e.o.Server, repo.URL)
	e.addFindings("token", findOK("%s answers; its default branch is %s", repo.FullName, repo.DefaultBranch))
	e.addFindings("dispatch", e.checkActive(ctx, repo.DefaultBranch))
	if e.isGitea() {
		owner, _, _ := strings.Cut(repo.FullName, "/")
		e.addFindings("starters", e.checkStarters(ctx, owner))
	}
	e.addFindings("comments", e.checkComments(ctx))
	e.addFindings("labels", e.checkLabels(ctx))
	e.addFindings("rules", e.checkRules(ctx))
	e.addFindings("pull-requests", e.checkPulls(ctx))
	e.addFindings("secrets", e.checkSecrets(ctx))
}

// CheckDone are the checks of what people do after uwf init, with a forge: whether it has the
// workflow file, lets jobs open pull requests, and has the secret. Where it can't be asked there
// are none.
func CheckDone(ctx context.Context, o Options) []Finding {
	e := &examination{o: o}
	e.checkWorkflow()
	repo, err := o.Forge.ReadRepository(ctx)
	if err != nil {
		return nil
	}
	e.addFindings("dispatch", e.checkActive(ctx, repo.DefaultBranch))
	e.addFindings("pull-requests", e.checkPulls(ctx))
	e.addFindings("secrets", e.checkSecrets(ctx))
	return e.found
}

// OnOther is what there is of uwf on a forge whose API it does not speak, and what not.
const OnOther = "threads run on people's machines (uwf run), are kept on the remote, and their work is taken by uwf thread apply, or by a merge request of the thread's branch that you open; there are no jobs, no comments and no uwf thread pr"

func tokenFix(err error) string {
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
func (e *examination) checkActive(ctx context.Context, branch string) Finding {
	list, err := e.o.Forge.ListWorkflows(ctx)
	if err != nil {
		return findUnknown(true, err.Error(), "see "+e.settingsPage("actions"))
	}
	name := cmp.Or(e.o.Workflow, "uwf.yml")
	if e.flow != nil {
		name = path.Base(e.flow.path)
	}
	i := slices.IndexFunc(list, func(w forge.Workflow) bool { return path.Base(w.Path) == name })
	switch {
	case i < 0:
		return findMissing(fmt.Sprintf("%s is not on the branch %s, from which jobs are started", name, branch), fmt.Sprintf("git push %s HEAD:%s once the file is committed, or merge the branch that has it", e.o.RemoteName, branch))
	case !list[i].Active:
		return findMissing(name+" is disabled", e.forgeCommand("gh workflow enable "+name, "actions/workflows/"+name, "actions?workflow="+name))
	}
	return findOK("%s is active on %s", name, branch)
}

// checkComments reads some issues; the labels show whether they can be written. Gitea fails on the
// comments of an issue that is not there.
func (e *examination) checkComments(ctx context.Context) Finding {
	if _, err := e.o.Forge.ListIssues(ctx, Labels(e.o.Label)[0].Name); err != nil {
		return findRefused(err, e.rightFix("issues: write", "Issues: read and write"))
	}
	return findOK("issues and their comments can be read")
}

// rightFix says how a token gets a right: a job's in its file, a person's own where
// it was made.
func (e *examination) rightFix(job, own string) string {
	if e.o.InJob {
		return "add " + job + " to permissions: of the job"
	}
	return "give your token the permission " + own
}

func (e *examination) checkLabels(ctx context.Context) Finding {
	labels := Labels(e.o.Label)
	var commands []string
	for _, l := range labels {
		commands = append(commands, fmt.Sprintf("gh label create %s --color %s", l.Name, l.Color))
	}
	byHand := e.forgeCommand(strings.Join(commands, "; "), "labels", "labels")
	if e.o.ReadOnly {
		return findUnknown(false, "labels were not made, as you asked", byHand)
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
		found := findRefused(err, fix)
		found.Required = e.o.InJob // labels can be made by hand, but without the right a job can't comment
		return found
	}
	return findOK("there are %s, %s and %s, so issues can be written to", labels[0].Name, labels[1].Name, labels[2].Name)
}

// harmlessRules are rules that uwf's pushes meet: they never force and never delete what
// a rule could be for.
func harmlessRules() []string {
	return []string{"deletion", "non_fast_forward", "required_linear_history"}
}

// rulesPage is where branch rules are set.
func (e *examination) rulesPage() string {
	if e.isGitea() {
		return e.settingsPage("settings/branches")
	}
	return e.settingsPage("settings/rules")
}

func (e *examination) checkRules(ctx context.Context) Finding {
	var found []string
	unknown := false
	for _, branch := range []string{e.o.Branch, "uwf/doctor"} {
		rules, known, err := e.o.Forge.ListBranchRules(ctx, branch)
		if err != nil {
			return findUnknown(true, err.Error(), "see "+e.rulesPage())
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
		return findMissing("branch rules stand in the way of uwf's pushes: "+strings.Join(found, ", "),
			fmt.Sprintf("leave %s and uwf/** out of these rules, or let jobs (GitHub Actions) bypass them: %s", e.o.Branch, e.rulesPage()))
	case unknown:
		return findUnknown(false, "no rule that this token may see stands in the way of uwf's pushes; those of branches that are not there yet, only an administrator may see all", fmt.Sprintf("see that no rule holds for %s and uwf/**: %s", e.o.Branch, e.rulesPage()))
	}
	return findOK("no branch rule stands in the way of %s and uwf/**", e.o.Branch)
}

func (e *examination) checkPulls(ctx context.Context) Finding {
	may, known, err := e.o.Forge.MayCreatePulls(ctx)
	fix := fmt.Sprintf(`tick "Allow GitHub Actions to create and approve pull requests" below Workflow permissions: %s`, e.settingsPage("settings/actions"))
	switch {
	case err != nil:
		return findUnknown(false, err.Error(), fix)
	case !known:
		return findUnknown(false, "this token can't read whether jobs may open pull requests; where they may not, uwf comments with a link that opens one", fix)
	case !may:
		return findLacking("jobs may not open pull requests: uwf comments with a link that opens one", fix)
	}
	return findOK("jobs may open pull requests")
}

// checkSecrets looks whether the secrets that the workflow file names are there. Their
// values can't be read by anybody.
func (e *examination) checkSecrets(ctx context.Context) Finding {
	if e.flow == nil {
		return Finding{}
	}
	want, literal := e.flow.secretNames()
	if literal {
		return findMissing(e.flow.path+" holds a key instead of the name of a secret", "revoke that key now; then make a secret, and write api-key: ${{ secrets.NAME }}")
	}
	if len(want) == 0 {
		return Finding{}
	}
	command := e.forgeCommand("gh secret set "+want[0], "settings/secrets/actions", "settings/actions/secrets")
	var have []string
	known := false
	if lister, ok := e.o.Forge.(forge.SecretLister); ok {
		have, known, _ = lister.ListSecretNames(ctx) // where it can't be read it is not known
	}
	for _, name := range want {
		switch {
		case slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, name) }):
		case !known:
			return findUnknown(false, "this token can't see whether there is a secret "+name, "if it is not there: "+command)
		default:
			return findMissing(fmt.Sprintf("there is no secret %s, which %s names", name, e.flow.path), command)
		}
	}
	return findOK("there is the secret %s", strings.Join(want, ", "))
}

// checkModel asks the model, where that is possible from here.
func (e *examination) checkModel(ctx context.Context) Finding {
	switch {
	case e.o.Model == nil && e.o.NoModel == "":
		return Finding{}
	case e.o.Model == nil:
		return findUnknown(false, e.o.NoModel, e.o.ModelFix)
	}
	err := e.o.Model(ctx)
	var fail *setup.Failure
	switch {
	case err == nil:
		return findOK("the model answers")
	case !errors.As(err, &fail):
		return findUnknown(false, err.Error(), "")
	case fail.Kind == setup.KindRate:
		return findOK("%s; it was reached, and took the key", fail.What)
	case slices.Contains([]string{setup.KindKey, setup.KindForbidden, setup.KindQuota, setup.KindModel, setup.KindPath, setup.KindAddress}, fail.Kind):
		return findMissing(fail.What, fail.Do)
	}
	return findUnknown(false, fail.What, fail.Do)
}

// checkStarters tells who may start and steer threads on a Gitea, where a job can't look up who may
// write: the owner who is a person, and whom the workflow file names. Where an organisation
// owns the repository and the file names nobody, every label is refused.
func (e *examination) checkStarters(ctx context.Context, owner string) Finding {
	if e.flow == nil {
		return Finding{} // said before
	}
	if calls := e.flow.calledFile(); calls != "" {
		return findUnknown(false, "whom "+calls+" lets start and steer can't be told from here", "see what it gives to the input allow")
	}
	names, ownToken := e.flow.namedStarters()
	fix := fmt.Sprintf(`name who may, in %s, below with: of the step that uses uwf: allow: "alice bob"`, e.flow.path)
	switch {
	case len(names) > 0:
		return findOK("%s names who may start and steer: %s", e.flow.path, strings.Join(names, ", "))
	case ownToken:
		return findUnknown(false, e.flow.path+" gives uwf a token of its own: whether that can look up who may write is not known here", "where it can't, "+fix)
	}
	organisation, known, err := e.askOwner(ctx)
	switch {
	case err != nil:
		return findUnknown(false, err.Error(), fix)
	case !known:
		return findUnknown(false, fmt.Sprintf("a job on Gitea can't look up who may write: %s may start and steer, if that is a person, and nobody at all, if it is an organisation", owner), fix)
	case organisation:
		return findMissing(fmt.Sprintf("nobody may start or steer: a job on Gitea can't look up who may write, %s is an organisation, and %s names nobody", owner, e.flow.path), fix)
	}
	return findOK("%s may start and steer, and nobody else: a job on Gitea can't look up who may write; others are named in allow: of %s", owner, e.flow.path)
}

// askOwner asks whether the repository is an organisation's; known is false where nobody can
// be asked.
func (e *examination) askOwner(ctx context.Context) (organisation, known bool, err error) {
	if asks, ok := e.o.Forge.(forge.Owners); ok {
		return asks.IsOwnedByOrganisation(ctx)
	}
	return false, false, nil
}

// namedStarters are the names that the file lets start and steer, and whether it gives the action
// another token than the job's.
func (f *flow) namedStarters() (names []string, ownToken bool) {
	for _, j := range f.jobs {
		token := j.with["token"]
		ownToken = ownToken || token != "" && !strings.Contains(token, "github.token") && !strings.Contains(token, "GITHUB_TOKEN")
		if allow := strings.TrimSpace(j.with["allow"]); strings.Contains(allow, "${{") {
			names = append(names, allow)
		} else {
			names = append(names, strings.FieldsFunc(allow, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' })...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), ownToken
}
