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

// What is tried of a toolchain, besides that it starts: the name of the user, pools of processes,
// and listening on loopback as a check does. Each prints its version.
const (
	tryNode = `try { require("os").userInfo() } catch (e) { console.error(e.message); process.exit(1) }
require("net").createServer().on("error", e => { console.error(e.message); process.exit(1) }).listen(0, "127.0.0.1", function () { this.close(); console.log(process.version) })`
	tryPython = `import multiprocessing, platform, socket
multiprocessing.Lock()
socket.create_server(("127.0.0.1", 0))
print(platform.python_version())`
)

// nameUser is the advice for programs that ask for the name of the agents' user.
const nameUser = "add the agents' user: useradd -u 60999 uwf-agent"

// checkTools says of each toolchain that is installed whether agents can use it; of one that
// does not work only if the repository has a file that wants it at its top.
func (e *examination) checkTools(ctx context.Context) {
	for _, tool := range []struct{ words, files []string }{
		{[]string{"node", "-e", tryNode}, []string{"package.json"}},
		{[]string{"python3", "-c", tryPython}, []string{"pyproject.toml", "requirements.txt", "setup.py"}},
		{[]string{"go", "version"}, []string{"go.mod"}},
		{[]string{"cargo", "--version"}, []string{"Cargo.toml"}},
		{[]string{"java", "-version"}, []string{"pom.xml", "build.gradle", "build.gradle.kts"}},
	} {
		words, files := tool.words, tool.files
		printed, hint, err := e.o.TryTool(ctx, words...)
		printed = strings.TrimSpace(printed)
		if strings.Contains(printed, "uv_os_get_passwd") {
			hint = nameUser
		}
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
