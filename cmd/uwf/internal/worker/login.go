package worker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/thread"
)

// usesOwnLogin says whether an agent's program uses a login, and no gateway.
func (w *Worker) usesOwnLogin(agent string) bool { return w.config.Agents[agent].Login != "" }

// lendToken is what an agent finds in its environment by its settings, and the job's token where
// they lend it.
func lendToken(f *app.Factory, c *config.Config, name string) map[string]string {
	env := c.Agents[name].Env
	foreign, _ := findForeign(c, name)
	if c.Agents[name].Login != config.JobLogin || f.Job == nil || foreign.Token == "" {
		return env
	}
	lent := map[string]string{foreign.Token: f.Job.AgentToken}
	maps.Copy(lent, env)
	return lent
}

// checkToken refuses to lend a job's token where that is of no use, or could do more than ask
// models.
func checkToken(f *app.Factory, c *config.Config, confined bool, name, setting string) error {
	foreign, _ := findForeign(c, name)
	switch {
	case foreign.Token == "":
		return app.Usagef("agent %s: %s is job, and its program takes no token of a job: remove the setting, so that it uses the gateway", name, setting)
	case f.Job == nil || f.Job.AgentToken == "":
		return app.Usagef("agent %s: %s is job, which is for the first of the two jobs that uwf init --two-jobs writes, whose token can write nothing; this is none: remove the setting, so that the agent uses the gateway", name, setting)
	case !strings.HasPrefix(f.Job.AgentToken, "ghs_"): // as GitHub's own are; a person's could do what the person may
		return app.Usagef("agent %s: %s is job, and the action's input token is not the job's own: leave the input out, so that the agent holds what can write nothing", name, setting)
	case confined && c.Confine.Network == config.NetworkGateway:
		return app.Usagef("agent %s: with %s: job it asks GitHub's servers, which confine.network: gateway does not allow: set confine.network to open, or remove the login", name, setting)
	}
	return nil
}

// withoutGateway is what does not hold for such an agent.
const withoutGateway = "uwf counts and bounds none of what it costs, records and replays nothing, and it holds a login of yours"

// settleLogin lets an agent use its own login where a person has said so once, and tells at each
// run what does not hold.
func (w *Worker) settleLogin(name string) error {
	demand := consent.Demand{Path: table.Join(table.Join("agents", name), "login"), Says: config.OwnLogin, Means: withoutGateway}
	switch {
	case w.config.Agents[name].Login == config.JobLogin:
		if err := checkToken(w.f, w.config, w.sandbox != nil, name, demand.Path); err != nil {
			return err
		}
		w.logEvent(thread.Event{Kind: "notice", Text: "agent " + name + " uses the job's own token: uwf counts and bounds none of what it costs, and it holds that token"})
		return nil
	case w.f.Job != nil:
		return app.Usagef("agent %s: %s is %s, which is for a person's machine, and this is a CI job: remove it, so that the agent uses the gateway", name, demand.Path, demand.Says)
	case w.o.Record != "" || w.o.Replay != "":
		return app.Usagef("agent %s uses its own login (%s), and nothing of it can be recorded or replayed: leave --record and --replay out, or remove the setting", name, demand.Path)
	case os.Geteuid() == 0 && w.sandbox != nil:
		return app.Usagef("agent %s uses its own login (%s), which the user that confined agents are can't read: run uwf as a user that is not root", name, demand.Path)
	}
	if err := w.askForLogin(name, demand); err != nil {
		return err
	}
	w.logEvent(thread.Event{Kind: "notice", Text: "agent " + name + " uses its own login: " + withoutGateway})
	return nil
}

func (w *Worker) askForLogin(name string, demand consent.Demand) error {
	demands := []consent.Demand{demand}
	digest := consent.Digest(demands)
	switch {
	case app.HasConsent(w.f, demand):
		return nil
	case slices.Contains(w.f.Trust, digest):
		return app.KeepConsent(w.f, demands)
	case !w.f.IO.CanAsk():
		return app.Usagef("agent %s would use its own login (%s): %s; nobody is there to ask, so say --trust %s to agree (kept for this repository), or remove the setting", name, demand.Path, withoutGateway, digest)
	}
	w.f.Notes().Printf("The agent %s would use its own login on this machine: %s.\n", name, withoutGateway)
	answer, err := w.f.Choose("Agree, for this repository? [y/N]", false)
	if err != nil {
		return err
	}
	if answer != app.Yes {
		return fmt.Errorf("agent %s: %w", name, app.ErrDeclined)
	}
	return app.KeepConsent(w.f, demands)
}

// errNoBound refuses a limit that nobody keeps.
var errNoBound = errors.New("a login (login: own, login: job) is neither counted nor bounded: set limits on steps and time alone, or remove login")
