package initialize

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/text"
)

// done is what is known to be done.
type done struct{ committed, brought, secret, pulls bool }

// lookDone looks what is done: in the checkout, and where there is a token for the forge here
// already, by asking that.
func (p *place) lookDone(ctx context.Context, o *Options, root *os.Root, files []*file) (d done) {
	commits := doctor.ReadCommits(ctx, o.Factory, p.remote)
	for _, c := range commits {
		all := !slices.ContainsFunc(files, func(x *file) bool {
			data := x.text
			if x.State == kept {
				data = x.old
			}
			return !c.Has(x.Path, data)
		})
		if c.Name == "HEAD" {
			d.committed = all
		} else {
			d.brought = all
		}
	}
	if !p.known || p.other != "" {
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	on, err := o.Client.Forge(ctx, p.forge)
	if err != nil {
		return d // there is no token
	}
	for _, f := range doctor.CheckDone(ctx, doctor.Options{Files: root.FS(), Forge: on}) {
		switch ok := f.State == doctor.OK; f.Check {
		case "secrets":
			d.secret = ok
		case "pull-requests":
			d.pulls = ok
		case "dispatch":
			d.brought = d.brought || ok && d.committed
		}
	}
	return d
}

// askTime bounds what the forge is asked: the files are written, and somebody waits.
const askTime = 10 * time.Second

// nextSteps is what is to be done, in order.
func (p *place) nextSteps(o *Options, a setup.Answers, d done, root *os.Root) []next {
	var out []next
	add := func(done bool, do, command string) { out = append(out, next{Do: do, Command: command, Done: done}) }
	if p.address == "" {
		add(false, "say where the repository is on the forge", "git remote add "+p.remote+" URL")
	}
	if o.Secret != "" {
		do, command := p.secretStep(o.Secret)
		add(d.secret, do, command)
	}
	if command := testsBelow(root, p.tools); command != "" {
		add(false, "say how a change is tested, for nothing at the top says it; this runs all tests that were found below", "uwf config set --repo checks.test "+text.ShellWord(command))
	}
	branch := p.branch
	if branch == "" {
		add(false, "HEAD is detached: go to your default branch first", "git switch "+cmp.Or(p.usual, "main"))
		branch = "HEAD"
	}
	names := []string{p.folder + "/uwf.yml", ".uwf"}
	if p.other != "" {
		names = names[1:]
	}
	add(d.committed, "commit the files", doctor.AddCommand(p.dir != p.root, names...)+" && git commit -m \"Let uwf work on issues\"")
	bring := "bring them to the default branch, by a push or a pull request"
	if p.usual != "" && p.branch != "" && p.usual != p.branch {
		bring = fmt.Sprintf("bring them to the default branch, %s, by a pull request of %s", p.usual, p.branch)
	}
	if p.other != "" {
		add(d.brought, bring, fmt.Sprintf("git push %s %s", p.remote, branch))
		return append(append(out, p.otherSteps(o, a)...), trustSteps(o.Factory)...)
	}
	add(d.brought, bring+"; jobs run from there", fmt.Sprintf("git push %s %s", p.remote, branch))
	if p.gitea {
		out = append(out, p.giteaSteps(o)...)
	} else {
		add(d.pulls, "let jobs open pull requests (else uwf comments with a link): tick \"Allow GitHub Actions to create and approve pull requests\", "+p.linkTo("settings/actions", "Settings, Actions, General"), "")
	}
	if c, ok := cli.Find(o.Agent); ok {
		add(false, fmt.Sprintf("to run %s on your own machine as well, install it, and see whether it works there: uwf agent check %s", c.Title, c.Name), c.Install())
	}
	add(false, "check it all, and make the labels", "uwf doctor")
	label := "gh issue edit NUMBER --add-label " + doctor.DefaultLabel
	if p.gitea {
		label = ""
	}
	add(false, "put the label "+doctor.DefaultLabel+" on an issue", label)
	if a.Provider == githubModels {
		add(false, "GitHub Models is a trial: a request takes about 8,000 tokens in and 4,000 out, and there are few a day; for more, choose a provider with a key (uwf init --provider … --force)", "")
	}
	return append(out, trustSteps(o.Factory)...)
}

// otherSteps are those where threads run on people's machines alone.
func (p *place) otherSteps(o *Options, a setup.Answers) []next {
	hasKey := false
	if c, err := config.Load(o.Factory.ConfigSources()); err == nil {
		_, err = c.FindModel(a.Provider)
		hasKey = err == nil
	}
	out := []next{{Do: "give this machine the provider's key, as everybody does who runs threads", Command: "uwf setup --provider " + a.Provider, Done: hasKey}}
	if c, ok := cli.Find(o.Agent); ok {
		out = append(out, next{Do: fmt.Sprintf("install %s, and see whether it works: uwf agent check %s", c.Title, c.Name), Command: c.Install()})
	}
	return append(out, next{Do: "run a thread", Command: `uwf run solve-issue -p "what is to be done"`})
}

// trustSteps let uwf send a key where the repository's settings say, on a person's own
// machine. Jobs read these settings from the default branch, and believe them.
func trustSteps(f *app.Factory) (out []next) {
	c, err := config.Load(f.ConfigSources()) // as they are now, with what was written
	if err != nil {
		return nil // what was wrong before is said by the checks, and by every command
	}
	for _, p := range c.WithheldProviders() {
		out = append(out, next{Do: fmt.Sprintf("to run agents on your own machine as well, where %s (jobs may): allow it if you trust that address, or set UWF_TRUST_REPO=1 for one run", p.Message), Command: p.Command})
	}
	return out
}

// giteaSteps are those that GitHub has no need of.
func (p *place) giteaSteps(o *Options) []next {
	out := []next{{Do: "see that a runner with the label ubuntu-latest is there: " + p.linkTo("settings/actions/runners", "Settings, Actions, Runners")}}
	const can = "may start and steer: a job can't look up on Gitea who may write"
	file := p.folder + "/uwf.yml"
	if len(o.Allow) > 0 {
		out = append(out, next{Do: fmt.Sprintf("%s, and the owner of a personal repository, %s; name others in allow: of %s", strings.Join(o.Allow, ", "), can, file)})
	} else {
		out = append(out, next{Do: fmt.Sprintf("only the owner of a personal repository %s; name others, and everybody where an organisation owns it, in allow: of %s", can, file)})
	}
	if o.TwoJobs {
		out = append(out, next{Do: fmt.Sprintf("exchange the two artifact actions of %s, which do not run on Gitea: it says by which", file)})
	}
	return out
}

// secretStep is how the secret is made: what to do, and the command for it.
func (p *place) secretStep(name string) (do, command string) {
	if p.gitea {
		return fmt.Sprintf("make a secret %s with the provider's key: %s", name, p.linkTo("settings/actions/secrets", "Settings, Actions, Secrets")), ""
	}
	return fmt.Sprintf("make a secret %s with the provider's key (the command asks for the key; or %s)", name, p.linkTo("settings/secrets/actions/new", "Settings, Secrets and variables, Actions")), "gh secret set " + name
}

// printWarnings tells of what people did not ask for but should know.
func (p *place) printWarnings(ctx context.Context, o *Options, files []*file) {
	switch {
	case p.other != "":
		o.Factory.Notes().Printf("%s is on %s: %s. No workflow file was written; where it is a Gitea all the same: --gitea.\n", p.remote, p.other, doctor.OnOther)
	case p.unsure != nil:
		o.Factory.Notes().Printf("%s does not say what it is (%v), so the files are for GitHub: for Gitea or Forgejo, run it again with --gitea --force.\n", p.forge.Server.Host, p.unsure)
	case p.taken:
		o.Factory.Notes().Printf("%s is taken for a GitHub Enterprise Server: on GitLab, Bitbucket and others uwf has no jobs; threads run on your machine there (uwf run).\n", p.forge.Server.Host)
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
		if n.Done {
			w.Good(fmt.Sprintf("%2d. ✓ %s\n", i+1, strings.TrimSpace(n.Do)))
			continue
		}
		w.Printf("%2d. %s\n", i+1, strings.TrimSpace(n.Do))
		if n.Command != "" {
			w.Printf("      %s\n", n.Command)
		}
	}
}
