package cli

import (
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/program"
	"github.com/united-workforce/uwf/cmd/uwf/internal/action"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agent"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agentcheck"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/config"
	"github.com/united-workforce/uwf/cmd/uwf/internal/demo"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/fsck"
	"github.com/united-workforce/uwf/cmd/uwf/internal/gc"
	"github.com/united-workforce/uwf/cmd/uwf/internal/inbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/initialize"
	"github.com/united-workforce/uwf/cmd/uwf/internal/log"
	"github.com/united-workforce/uwf/cmd/uwf/internal/ps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/purge"
	runcmd "github.com/united-workforce/uwf/cmd/uwf/internal/run"
	"github.com/united-workforce/uwf/cmd/uwf/internal/schema"
	setupcmd "github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/step"
	"github.com/united-workforce/uwf/cmd/uwf/internal/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/trust"
	"github.com/united-workforce/uwf/cmd/uwf/internal/version"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflow"
)

// NewRoot makes the whole command line.
func NewRoot(f *app.Factory) *cobra.Command {
	root := app.Group(&cobra.Command{
		Use:   "uwf",
		Short: "Workflows for teams of AI agents; the scheduler is CI, the database is git",
		Long: `uwf runs workflows of AI agents, one step at a time. Everything that happened lies on
one branch of your repository; there is no server and no database.

Exit codes: 0 advanced or ended · 1 the step failed · 2 wrong usage or invalid
definition · 3 suspended, waits for a person · 4 not yours to step · 5 store damaged
or unreadable · 6 limit reached`,
		Example: `  uwf demo
  uwf run solve-issue -p "The parser panics on an empty file"
  uwf log 01JY0000000000000000000000`,
		Version: program.ReadBuild(f.Release, f.Commit).Version,
	}, nounCommands(f)...)
	program.AddOutput(f, root, func(cmd *cobra.Command) bool {
		_, ok := schema.Of(cmd.CommandPath())
		return ok || cmd.HasSubCommands()
	})
	app.OwnCommands(root)
	refuseInAgents(f, root)
	return root
}

// nounCommands are the nouns, in the order of the help.
func nounCommands(f *app.Factory) []*cobra.Command {
	return []*cobra.Command{
		runcmd.NewCmdRun(f, nil),
		demo.NewCmdDemo(f, nil),
		thread.NewCmdThread(f),
		step.NewCmdStep(f, thread.NewCmdFork(f, nil)),
		ps.NewCmdPs(f, nil),
		inbox.NewCmdInbox(f, nil),
		workflow.NewCmdWorkflow(f),
		log.NewCmdLog(f, nil),
		initialize.NewCmdInit(f, nil),
		doctor.NewCmdDoctor(f, action.InputNames(), action.CheckInputs, nil),
		setupcmd.NewCmdSetup(f, nil),
		config.NewCmdConfig(f),
		trust.NewCmdTrust(f),
		cas.NewCmdCas(f),
		fsck.NewCmdFsck(f, nil),
		newCmdImport(f),
		gc.NewCmdGC(f, nil),
		purge.NewCmdPurge(f, nil),
		schema.NewCmdSchema(f, nil),
		version.NewCmdVersion(f, nil),
		action.NewCmdAction(f, nil),
		agent.NewCmd(agent.Options{
			Process: agents.Process{Stdout: f.IO.Out, Stderr: f.IO.Err, Environ: f.Environ, Dir: f.Dir, Now: f.Now}, Stdin: f.IO.In,
		}, agentcheck.NewCmdList(f, nil), agentcheck.NewCmdCheck(f, nil)),
	}
}
