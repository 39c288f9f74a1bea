package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/config"
)

// ErrNoTool says that a program is not installed.
var ErrNoTool = errors.New("it is not installed")

// tools are the trials of toolchains: the name of the user, pools of processes, listening on loopback
// as a check does, temporary files and a cache. sh runs a script, whose argument is code; it prints
// the version last.
var tools = [...]struct {
	program, script, code string
	files                 []string // say that a repository needs the toolchain
}{
	{"node", `node -e "$1"`, `try { require("os").userInfo() } catch (e) { console.error(e.message); process.exit(1) }
require("net").createServer().on("error", e => { console.error(e.message); process.exit(1) }).listen(0, "127.0.0.1", function () { this.close(); console.log(process.version) })`,
		[]string{"package.json"}},
	{"pnpm", `echo {} > package.json && pnpm install --offline && pnpm --version`, "", []string{"pnpm-lock.yaml"}},
	{"python3", `python3 -c "$1"`, `import multiprocessing, platform, socket
multiprocessing.Lock()
socket.create_server(("127.0.0.1", 0))
print(platform.python_version())`,
		[]string{"pyproject.toml", "requirements.txt", "setup.py"}},
	// A main would compile Go's runtime first, 12 s of processor time.
	{"go", "echo package x > x.go && go build x.go && go version", "", []string{"go.mod"}},
	{"cargo", "cargo --version", "", []string{"Cargo.toml"}},
	{"java", `command -v javac > /dev/null || exec java -version; echo "$1" > T.java && javac T.java && java -cp . T`, `class T {
  public static void main(String[] args) throws Exception {
    try {
      java.nio.file.Files.createTempFile("uwf", null);
    } catch (java.io.IOException e) {
      System.out.println(e);
      System.exit(1);
    }
    System.out.println(System.getProperty("java.version"));
  }
}`,
		[]string{"pom.xml", "build.gradle", "build.gradle.kts"}},
}

// nameUser is the advice for programs that ask for the name of the agents' user.
const nameUser = "add the agents' user: useradd -u 60999 uwf-agent"

// checkTools says of each toolchain that is installed whether agents can use it; of one that
// does not work only if the repository has a file that wants it at its top. All are tried at once.
func (e *examination) checkTools(ctx context.Context) {
	var found [len(tools)]Finding
	var all sync.WaitGroup
	for i, t := range tools {
		all.Go(func() {
			printed, hint, err := e.o.TryTool(ctx, t.program, "sh", "-c", t.script, "sh", t.code)
			if err == nil || e.o.Files == nil || slices.ContainsFunc(t.files, e.hasFile) {
				found[i] = judgeTool(strings.TrimSpace(printed), hint, err)
			}
		})
	}
	all.Wait()
	for i, t := range tools {
		e.addFindings(t.program, found[i])
	}
}

// judgeTool is the finding for what a toolchain's script printed and how it ended.
func judgeTool(printed, hint string, err error) Finding {
	if strings.Contains(printed, "uv_os_get_passwd") {
		hint = nameUser
	}
	last := output.Line(printed[strings.LastIndexByte(printed, '\n')+1:], maxToolLine)
	switch {
	case errors.Is(err, ErrNoTool):
		return Finding{}
	case err == nil:
		return Finding{State: OK, Detail: "works confined: " + last}
	case errors.Is(err, worker.ErrTrialTime):
		return findUnknown(false, "can't be tried confined: "+err.Error(), "try again when the machine has less to do")
	}
	return findLacking("does not work confined: "+cmp.Or(last, err.Error()),
		cmp.Or(hint, "name the folders that it needs in confine.read of ~/.uwf/config.yaml, or install it where every user can read it"))
}

func (e *examination) hasFile(name string) bool {
	_, err := fs.Stat(e.o.Files, name)
	return err == nil
}

// maxToolLine is how much is shown of what a tool says, in characters.
const maxToolLine = 300

// tryConfined runs a command line as agents would if a program of it is on this machine.
func tryConfined(ctx context.Context, f *app.Factory, c *config.Config, program string, words []string) (printed, hint string, err error) {
	if _, _, err := f.Program(program); err != nil {
		return "", "", ErrNoTool
	}
	shell, environ, err := f.Program(words[0])
	if err != nil {
		return "", "", err
	}
	self, err := f.Self()
	if err != nil {
		return "", "", err
	}
	return worker.TryProgram(ctx, f, worker.NewSandbox(f, c, self, c.Sandbox, false), worker.Trial{Argv: append([]string{shell}, words[1:]...), Environ: environ})
}
