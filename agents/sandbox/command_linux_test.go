package sandbox_test

import (
	"testing"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/agents/sandbox"
)

// runCommand runs a command line as a command of a repository, with a network.
func runCommand(network sandbox.Network) sandbox.RunLine {
	return func(t *testing.T, o sandbox.Options, workspace, temp string, argv, files []string) (int, string) {
		t.Helper()
		r := command.NewRunner(command.Options{Self: o.Self, Environ: o.Environ, Sandbox: sandbox.New(o), TempDir: temp})
		res, err := r.Run(t.Context(), command.Command{
			Argv: argv, Dir: workspace, Network: network, Read: files, MaxOutput: 1 << 20,
			Environ: []string{"GORACE=atexit_sleep_ms=0"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Code, res.Output
	}
}

// No escape of agents works for commands either.
func TestEscapesOfCommands(t *testing.T) { sandbox.TryEscapes(t, runCommand("")) }

// A command without a network reaches nothing, also where agents have one.
func TestNetworkEscapesOfCommands(t *testing.T) {
	sandbox.TryNetworkEscapes(t, runCommand(sandbox.GatewayOnly))
}
