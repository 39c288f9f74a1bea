package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
)

// ErrNoTool says that a program is not installed.
var ErrNoTool = errors.New("it is not installed")

// checkTools says of each toolchain that is installed whether agents can use it; of one that
// does not work only if the repository has a file that wants it at its top.
func (e *examination) checkTools(ctx context.Context) {
	for _, tool := range [][]string{
		{"node", "--version", "package.json"}, {"python3", "--version", "pyproject.toml", "requirements.txt", "setup.py"},
		{"go", "version", "go.mod"}, {"cargo", "--version", "Cargo.toml"},
	} {
		words, files := tool[:2], tool[2:]
		printed, hint, err := e.o.TryTool(ctx, words...)
		printed = strings.TrimSpace(printed)
		last := output.Line(printed[strings.LastIndexByte(printed, '\n')+1:], maxToolLine)
		switch {
		case errors.Is(err, ErrNoTool):
		case err == nil:
			e.addFindings(words[0], Finding{State: OK, Detail: "works confined: " + last})
		case e.o.Files == nil || slices.ContainsFunc(files, e.hasFile):
			e.addFindings(words[0], findLacking("does not work confined: "+cmp.Or(last, err.Error()),
				cmp.Or(hint, "name the folders that it needs in confine.read of ~/.uwf/config.yaml, or install it where every user can read it")))
		}
	}
}

func (e *examination) hasFile(name string) bool {
	_, err := fs.Stat(e.o.Files, name)
	return err == nil
}

// maxToolLine is how much is shown of what a tool says, in characters.
const maxToolLine = 300

// tryConfined runs a program of this machine as agents would.
func tryConfined(ctx context.Context, f *app.Factory, c *config.Config, words []string) (printed, hint string, err error) {
	program, environ, err := f.Program(words[0])
	if err != nil {
		return "", "", ErrNoTool
	}
	self, err := f.Self()
	if err != nil {
		return "", "", err
	}
	return worker.TryProgram(ctx, f, worker.NewSandbox(f, c, self, c.Sandbox, false), worker.Trial{Argv: append([]string{program}, words[1:]...), Environ: environ})
}
