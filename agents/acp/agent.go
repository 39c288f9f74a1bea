package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/agents/internal/proc"
)

// Agent is one conversation with a server. It implements agents.Adapter; use a new one for
// each run, and close it.
type Agent struct {
	Server Server

	process *process
}

var _ agents.Adapter = (*Agent)(nil)

// Run starts the server and does the task. It implements agents.Adapter.
func (a *Agent) Run(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	v := readValues(s)
	if err := a.checkSession(s, v); err != nil {
		return agents.Answer{}, err
	}
	env, err := a.Server.environ(s, v)
	if err != nil {
		return agents.Answer{}, err
	}
	argv := append([]string{s.Getenv(agents.EnvProgram)}, a.Server.Args...)
	if a.process, err = startProcess(s.Getenv(proc.MarkName), argv, s.Workspace, env); err != nil {
		return agents.Answer{}, err
	}
	a.process.Policy = a.Server.Policy
	a.process.Progress = func(line string) { _, _ = fmt.Fprintf(s.Stderr, "%s: %s\n", a.Server.Name, line) }
	if err := a.openSession(ctx, s, v); err != nil {
		return agents.Answer{}, a.failProcess(err)
	}
	return a.askServer(ctx, s.Task.Prompt)
}

// Continue gives the complaint to the same session. What was written meanwhile for such tools
// into the workspace takes no effect. It implements agents.Adapter.
func (a *Agent) Continue(ctx context.Context, s *agents.Session, complaint string) (_ agents.Answer, err error) {
	if a.process == nil {
		return agents.Answer{}, fmt.Errorf("%s: there is no session to continue", a.Server.Name)
	}
	restore, err := cli.HideSettings(ctx, s, a.Server.hiddenNames()...)
	if err != nil {
		return agents.Answer{}, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	return a.askServer(ctx, complaint)
}

// Close ends the server and all that it started.
func (a *Agent) Close() error {
	if a.process == nil {
		return nil
	}
	return a.process.endProcess()
}

// checkSession refuses what can't work before anything is run.
func (a *Agent) checkSession(s *agents.Session, v values) error {
	switch {
	case s.Getenv(agents.EnvProgram) == "":
		return fmt.Errorf("%s is not set: uwf sets it when it runs this agent", agents.EnvProgram)
	case s.Getenv("HOME") == "" || s.Getenv("TMPDIR") == "":
		return errors.New("HOME or TMPDIR is not set: uwf sets them when it runs this agent")
	case a.Server.OwnServers && v.url != "":
		return fmt.Errorf("%s talks to the servers of its makers alone, and can't use the gateway: set agents.%s.login to own in ~/.uwf/config.yaml, or use another agent", a.Server.Program, a.Server.Name)
	case a.Server.Install != "" && v.url != "" && v.model == "":
		return fmt.Errorf("%s needs a model: set defaultModel, or modelOverrides for this role", a.Server.Name)
	}
	return nil
}

// openSession begins the conversation.
func (a *Agent) openSession(ctx context.Context, s *agents.Session, v values) error {
	if err := a.process.Initialize(ctx); err != nil {
		if a.Server.hint != "" {
			err = fmt.Errorf("%w; %s", err, a.Server.hint)
		}
		return err
	}
	var servers []mcp.Address
	if a.Server.cli == nil { // others are told by their settings
		servers = mcp.ReadAddresses(s.Getenv(mcp.EnvServers))
	}
	if err := a.process.StartSession(ctx, s.Workspace, servers, v.key, a.Server.Meta); err != nil {
		return err
	}
	if a.Server.Mode == "" {
		return nil
	}
	return a.process.SetMode(ctx, a.Server.Mode)
}

// askServer asks for one turn. What it cost is counted by the gateway.
func (a *Agent) askServer(ctx context.Context, prompt string) (agents.Answer, error) {
	said, err := a.process.Prompt(ctx, prompt)
	if err != nil {
		return agents.Answer{}, a.failProcess(err)
	}
	return agents.Answer{Text: said}, nil
}

// failProcess ends the server and says what failed, with the end of what it printed on stderr.
func (a *Agent) failProcess(err error) error {
	left := a.process.endProcess()
	err = fmt.Errorf("%s: %w", a.Server.Program, err)
	if printed := a.process.errs.String(); printed != "" {
		err = fmt.Errorf("%w\n%s", err, printed)
	}
	return errors.Join(err, left)
}
