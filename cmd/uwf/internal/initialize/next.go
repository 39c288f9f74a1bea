package initialize

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/config"
)

// nextSteps is what is left to do, in order.
func (p *place) nextSteps(o *Options, a setup.Answers) []next {
	var out []next
	if p.address == "" {
		out = append(out, next{"say where the repository is on the forge", "git remote add " + p.remote + " URL"})
	}
	if o.Secret != "" {
		out = append(out, p.secretStep(o.Secret))
	}
	branch := p.branch
	if branch == "" {
		out = append(out, next{"HEAD is detached: go to your default branch first", "git switch main"})
		branch = "HEAD"
	}
	out = append(out,
		next{"commit the files", doctor.AddCommand(p.dir != p.root, p.folder+"/uwf.yml", ".uwf") + " && git commit -m \"Let uwf work on issues\""},
		next{"bring them to the default branch, by a push or a pull request; jobs run from there", fmt.Sprintf("git push %s %s", p.remote, branch)},
	)
	if !p.gitea {
		out = append(out, next{"let jobs open pull requests (else uwf comments with a link): tick \"Allow GitHub Actions to create and approve pull requests\", " + p.linkTo("settings/actions", "Settings, Actions, General"), ""})
	}
	if p.gitea {
		out = append(out, p.giteaSteps(o)...)
	}
	if c, ok := cli.Find(o.Agent); ok {
		out = append(out, next{fmt.Sprintf("to run %s on your own machine as well, install it, and see whether it works there: uwf agent check %s", c.Title, c.Name), c.Install()})
	}
	out = append(out, next{"check it all, and make the labels", "uwf doctor"})
	label := next{"put the label " + doctor.DefaultLabel + " on an issue", "gh issue edit NUMBER --add-label " + doctor.DefaultLabel}
	if p.gitea {
		label.Command = ""
	}
	out = append(out, label)
	if a.Provider == githubModels {
		out = append(out, next{"GitHub Models is a trial: a request takes about 8,000 tokens in and 4,000 out, and there are few a day; for more, choose a provider with a key (uwf init --provider … --force)", ""})
	}
	return append(out, trustSteps(o.Factory)...)
}

// trustSteps let uwf send a key where the repository's settings say, on a person's own
// machine. Jobs read these settings from the default branch, and believe them.
func trustSteps(f *app.Factory) (out []next) {
	c, err := config.Load(f.ConfigSources()) // as they are now, with what was written
	if err != nil {
		return nil // what was wrong before is said by the checks, and by every command
	}
	for _, p := range c.WithheldProviders() {
		out = append(out, next{fmt.Sprintf("to run agents on your own machine as well, where %s (jobs may): allow it if you trust that address, or set UWF_TRUST_REPO=1 for one run", p.Message), p.Command})
	}
	return out
}

// giteaSteps are those that GitHub has no need of.
func (p *place) giteaSteps(o *Options) []next {
	out := []next{{"see that a runner with the label ubuntu-latest is there: " + p.linkTo("settings/actions/runners", "Settings, Actions, Runners"), ""}}
	const can = "may start and steer: a job can't look up on Gitea who may write"
	file := p.folder + "/uwf.yml"
	if len(o.Allow) > 0 {
		out = append(out, next{fmt.Sprintf("%s, and the owner of a personal repository, %s; name others in allow: of %s", strings.Join(o.Allow, ", "), can, file), ""})
	} else {
		out = append(out, next{fmt.Sprintf("only the owner of a personal repository %s; name others, and everybody where an organisation owns it, in allow: of %s", can, file), ""})
	}
	if o.TwoJobs {
		out = append(out, next{fmt.Sprintf("exchange the two artifact actions of %s, which do not run on Gitea: it says by which", file), ""})
	}
	return out
}

func (p *place) secretStep(name string) next {
	if p.gitea {
		return next{fmt.Sprintf("make a secret %s with the provider's key: %s", name, p.linkTo("settings/actions/secrets", "Settings, Actions, Secrets")), ""}
	}
	return next{fmt.Sprintf("make a secret %s with the provider's key (the command asks for the key; or %s)", name, p.linkTo("settings/secrets/actions/new", "Settings, Secrets and variables, Actions")), "gh secret set " + name}
}

// printWarnings tells of what people did not ask for but should know.
func (p *place) printWarnings(ctx context.Context, o *Options, files []*file) {
	if p.unsure != nil {
		o.Factory.Notes().Printf("%s does not say what it is (%v), so the files are for GitHub: for Gitea or Forgejo, run it again with --gitea --force.\n", p.forge.Server.Host, p.unsure)
	}
	if p.dir != p.root {
		o.Factory.Notes().Printf("The files are in the repository's top folder, %s.\n", p.root)
	}
	for _, x := range files {
		if _, err := app.GitHere(ctx, o.Factory, "check-ignore", "--quiet", "--", x.Path); err == nil {
			o.Factory.Notes().Printf("%s is ignored by git: take it out of .gitignore, or add it with git add --force.\n", x.Path)
		}
	}
}

// writeText is the result for people.
func (r result) writeText(w *output.Writer) {
	width := 0
	for _, x := range r.Files {
		width = max(width, len(x.Path))
	}
	for _, x := range r.Files {
		w.Printf("%-11s %-*s  %s\n", x.State, width, x.Path, x.What)
	}
	bad := slices.DeleteFunc(slices.Clone(r.Findings), func(f doctor.Finding) bool { return f.State == doctor.OK })
	if len(bad) > 0 {
		w.Printf("\n")
		doctor.Text(w, bad)
	}
	w.Printf("\nnext:\n")
	for i, n := range r.Next {
		w.Printf("%2d. %s\n", i+1, strings.TrimSpace(n.Do))
		if n.Command != "" {
			w.Printf("      %s\n", n.Command)
		}
	}
}
