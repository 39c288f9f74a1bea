package worker

import (
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// allowsShell says whether the builtin agent may run commands.
func (w *Worker) allowsShell() bool { return w.o.AllowShell || w.config.AllowShell }

// runsCommands finds what only a shell can do in a role's capabilities. They are free text:
// "running the tests", "execute the linter".
var runsCommands = lazyregexp.New(`(?i)\b(runs?|running|execut(e|es|ing)|shell|bash|terminal|command line|commands?)\b`)

// shellCapability is the capability of a role that needs a shell; empty: none does.
func shellCapability(role workflow.Role) string {
	for _, c := range role.Capabilities {
		if runsCommands.MatchString(c) {
			return text.OneLine(c)
		}
	}
	return ""
}

// offerShell asks the person once, before the first paid turn, whether a role that wants to
// run commands may. Where nobody can be asked, or a file says no, the flag is named instead.
func (w *Worker) offerShell(role workflow.Role) error {
	wants := shellCapability(role)
	if wants == "" || w.shellOffered || w.allowsShell() || w.f.Job != nil || w.o.Elsewhere || w.o.AsksNobody {
		return nil
	}
	w.shellOffered = true
	if _, refused := w.config.Origins["allowShell"]; refused || !w.f.IO.CanAsk() { // a file's no is an answer
		w.logEvent(thread.Event{Kind: "notice", Role: role.Name, Text: "the role " + role.Name + " (" + wants + ") gets no shell, so its agent can run no commands: --allow-shell lets it"})
		return nil
	}
	w.f.Notes().Printf("The role %s is made for %q,\nand its agent may run no commands here.\n", role.Name, wants)
	answer, err := w.f.Choose("May agents run commands? [y: in this run, a: always in this repository, N]", true)
	if err != nil {
		return err
	}
	switch answer {
	case app.Always:
		w.o.AllowShell = true
		return app.KeepConsent(w.f, []consent.Demand{config.ShellDemand()})
	case app.Yes:
		w.o.AllowShell = true
	}
	return nil
}
