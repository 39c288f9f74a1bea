// Package doctor is `uwf doctor`: whether a repository has what the action needs,
// each permission tested by its real call or setting, and for what is missing the
// click or the command that mends it. Check is called by the command, by `uwf init`
// and by the action when a job failed. It changes nothing but a ref of its own,
// which it removes, and the three labels, which it makes.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what Check works with. What is nil is not checked, or is unknown.
type Options struct {
	// Files are the repository's; nil: those checks are left out.
	Files fs.FS
	// Forge is asked with a token; nil: NoForge says why not, and ForgeFix what to do.
	Forge             forge.Forge
	NoForge, ForgeFix string
	// Gitea: the forge is one. It need not be set where Forge is.
	Gitea bool
	// Other is the forge that the repository is on, where uwf has no jobs: GitLab. Empty: it is
	// GitHub, Gitea or unknown.
	Other string
	// Remote is where threads are kept; nil: NoRemote says why not.
	Remote   wire.Remote
	NoRemote string
	// RemoteName is what git here calls it, for commands; empty: origin. Below: commands are
	// typed in a folder below the repository's top one.
	RemoteName string
	Below      bool
	// Commits are what the files are compared with, the nearest first.
	Commits []Commit
	// NoSettings says why the settings of this machine and of the repository can't be used
	// together; empty: they can.
	NoSettings string
	// Inputs are the names of the action's inputs, and Providers those of the model
	// providers that there are; where there are none, names are not checked. CheckInputs
	// says what is wrong with the inputs' values.
	Inputs, Providers []string
	CheckInputs       func(given map[string]string) error
	// Sandbox is what confines agents here, a sentence each; SandboxOK: it is enough.
	Sandbox   []string
	SandboxOK bool
	// TryTool runs words as confined agents do, and returns their output. If program is not
	// installed, the error is ErrNoTool. hint is the setting that would open a denied place, if uwf
	// knows one. Several goroutines call it. Nil: agents are not confined here.
	TryTool func(ctx context.Context, program string, words ...string) (output, hint string, err error)
	// Agents are the programs of somebody else's that agents in use run, by the agents' names.
	Agents []Agent
	// Branch is the state branch; empty: uwf-state.
	Branch string
	// Branches are those of this checkout, and of its remote as it was fetched last, by their
	// full names there.
	Branches map[string]wire.ID
	// Unreadable says why uwf can't work with this repository at all; nil: it can.
	Unreadable error
	// StateRemote: state.remote is set, so threads are kept on the remote.
	StateRemote bool
	// Prepares: the settings say how a workspace is prepared.
	Prepares bool
	// Submodules: the settings have the files of submodules fetched.
	Submodules bool
	// Warnings are those of all settings together, free of secrets.
	Warnings []string
	// Policies are what the organisation allows, a line each; Refused is what settings name and
	// they do not.
	Policies, Refused []string
	// Label is the one that starts a thread; empty: uwf.
	Label string
	// Workflow is the workflow's file (its base name); empty: the one that uses uwf.
	Workflow string
	// Issue is one that is known to be there; 0: none.
	Issue int
	// Server is the repository's page, for links: https://github.com/owner/name.
	Server string
	// Model asks the model for one word. Nil: NoModel says why not, and ModelFix what to do.
	Model             func(context.Context) error
	NoModel, ModelFix string
	// InJob: the token is a job's own, so what it may do is what jobs may do.
	InJob bool
	// Offline: nothing is asked over the network, and nothing is said about it.
	Offline bool
	// ReadOnly: nothing is pushed, and no label is made.
	ReadOnly bool
	// Rand names the ref that is pushed.
	Rand io.Reader
}

// State is what a check found.
type State string

// The states.
const (
	OK      State = "ok"
	Missing State = "missing"
	Unknown State = "unknown" // it can't be told from here
)

// Finding is the result of one check.
type Finding struct {
	Check    string `json:"check"`
	State    State  `json:"state"`
	Required bool   `json:"required"` // nothing works without it
	Detail   string `json:"detail"`
	Fix      string `json:"fix,omitempty"` // the click or the command that mends it
}

// Failed reports whether something is missing without which nothing works.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.State == Missing && f.Required })
}

// DefaultLabel starts a thread where nothing else is said.
const DefaultLabel = "uwf"

// Labels are those that uwf uses: the one that starts a thread, and those that tell
// of one that waits or failed.
func Labels(start string) []forge.Label {
	return []forge.Label{
		{Name: start, Color: "1d76db", Description: "AI agents work on this"},
		{Name: "uwf-waiting", Color: "fbca04", Description: "AI agents wait for an answer here"},
		{Name: "uwf-failed", Color: "b60205", Description: "AI agents failed here"},
	}
}

// Check makes all checks, in the order in which a repository is set up. In an empty
// repository it makes no others.
func Check(ctx context.Context, o Options) []Finding {
	o.Branch, o.Label, o.RemoteName = cmp.Or(o.Branch, gitcas.DefaultBranch), cmp.Or(o.Label, DefaultLabel), cmp.Or(o.RemoteName, "origin")
	e := &examination{o: o}
	if o.Files != nil {
		e.checkFiles()
	}
	if o.TryTool != nil {
		e.checkTools(ctx)
	}
	for _, a := range o.Agents {
		e.addFindings("agent", a.finding())
	}
	if !o.Offline {
		e.checkOnline(ctx)
	} else {
		e.addFindings("branches", e.checkNames())
	}
	return e.found
}

// Agent is an agent in use that runs a program of somebody else's.
type Agent struct {
	Name, Program, Version string // Program is a path
	Missing                string // why it can't be run; empty: it is there
	Install                string // how people get it
}

// finding is what is said of the agent. It is not required: jobs may have what this machine has not.
func (a Agent) finding() Finding {
	if a.Missing != "" {
		return findLacking(a.Name+" can't run here: "+a.Missing, cmp.Or(a.Install, "uwf agent check "+a.Name))
	}
	return findOK("%s runs %s", a.Name, strings.TrimSpace(a.Program+" "+a.Version))
}

// examination is one run of Check.
type examination struct {
	o      Options
	flow   *flow // the workflow file; nil: it was not found or read
	found  []Finding
	listed map[string]wire.ID // the remote's branches
}

// addFindings notes what a check found. A Finding without a state says nothing.
func (e *examination) addFindings(check string, found ...Finding) {
	for _, f := range found {
		if f.Check = check; f.State != "" {
			e.found = append(e.found, f)
		}
	}
}

func findOK(format string, args ...any) Finding {
	return Finding{State: OK, Required: true, Detail: fmt.Sprintf(format, args...)}
}

// findMissing is for that without which nothing works, and findLacking for all else.
func findMissing(detail, fix string) Finding {
	return Finding{State: Missing, Required: true, Detail: detail, Fix: fix}
}

func findLacking(detail, fix string) Finding {
	return Finding{State: Missing, Detail: detail, Fix: fix}
}

func findUnknown(required bool, detail, fix string) Finding {
	return Finding{State: Unknown, Required: required, Detail: detail, Fix: fix}
}

// findRefused is for a server that did not do what was asked of it.
func findRefused(err error, fix string) Finding {
	return Finding{State: stateOf(err), Required: true, Detail: err.Error(), Fix: fix}
}

// AddCommand is the command that adds files to git's index, by their paths from the
// repository's top folder; below: it is typed in another folder.
func AddCommand(below bool, files ...string) string {
	words := []string{"git", "add"}
	for _, name := range files {
		if below {
			name = ":/" + name
		}
		words = append(words, text.ShellWord(name))
	}
	return strings.Join(words, " ")
}

// settingsPage is a page of the repository's settings; without a known address, its name.
func (e *examination) settingsPage(path string) string {
	if e.o.Server == "" {
		return "the repository's page"
	}
	return e.o.Server + "/" + path
}

// editPage is the page on which a file of the state branch is edited.
func (e *examination) editPage(file string) string {
	edit := "edit/"
	if e.o.Gitea || e.isGitea() {
		edit = "_edit/"
	}
	return e.settingsPage(edit + e.o.Branch + "/" + file)
}

// isGitea reports whether the forge that answers is one.
func (e *examination) isGitea() bool {
	return e.o.Forge != nil && e.o.Forge.ForgeFlavour() == forge.Gitea
}

// forgeCommand is a command of GitHub's own program, and the page that does the same;
// elsewhere the page alone.
func (e *examination) forgeCommand(gh, githubPage, giteaPage string) string {
	if e.isGitea() {
		return e.settingsPage(giteaPage)
	}
	return fmt.Sprintf("%s (or: %s)", gh, e.settingsPage(githubPage))
}
