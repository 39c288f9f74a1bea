package agentclitest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const geminiVersion = "0.61.0"

// The flags of `gemini --help` that have to do with runs without a terminal.
var (
	geminiPlain  = []string{"--yolo", "-y", "--skip-trust", "--version", "-v"}
	geminiValued = []string{"--output-format", "-o", "-m", "--model", "--resume", "-r", "--session-id", "--session-file", "--approval-mode"}
)

// gemini is one run.
type gemini struct {
	id, model, system string
	url, key          string
	session           session
	asked, called     int
}

func runGemini() {
	flags, _, unknown := parseFlags(os.Args[1:], geminiPlain, geminiValued)
	trusted := os.Getenv("GEMINI_CLI_TRUST_WORKSPACE") == "true"
	switch {
	case unknown != "":
		exitYargs("gemini", unknown)
	case flags["--version"] != nil || flags["-v"] != nil:
		fmt.Println(geminiVersion)
		os.Exit(0)
	case flags["--skip-trust"] == nil && !trusted:
		exit(55, `Approval mode overridden to "default" because the current folder is not trusted.`)
	}
	endWell()
	g := &gemini{model: strings.Join(flags["-m"], ""), id: strings.Join(flags["--session-id"], "")}
	if trusted { // --skip-trust comes after its settings were read
		g.obeyWorkspace()
	}
	g.url, g.key = os.Getenv("GOOGLE_GEMINI_BASE_URL"), os.Getenv("GEMINI_API_KEY")
	checkLogin()
	resumed := strings.Join(flags["--resume"], "")
	switch {
	case resumed != "":
		g.id = resumed
	case g.id == "":
		g.id = newID()
	}
	g.session.file = filepath.Join(os.Getenv("HOME"), ".gemini/tmp", projectName(), "chats/session-"+g.id+".json")
	if found := g.session.load(); resumed != "" && !found {
		exit(42, "Error resuming session: No previous sessions found for this project.")
	}
	g.keepContent("user", object{"text": readPrompt()})
	holdConversation(g, &g.session, true)
}

// endWell has SIGTERM end the process as if all were well, but for what it prints.
func endWell() {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)
	go func() {
		<-stopped
		os.Exit(0)
	}()
}

// checkLogin wants to see in HOME's settings how it logs in: the environment does not do.
func checkLogin() {
	var settings struct {
		Security struct{ Auth struct{ SelectedType string } }
	}
	_ = json.Unmarshal([]byte(readFiles(filepath.Join(os.Getenv("HOME"), ".gemini/settings.json"))), &settings) // a broken one says nothing
	if settings.Security.Auth.SelectedType != "gemini-api-key" {
		exit(41, "Invalid auth method selected.")
	}
}

// obeyWorkspace does what the workspace's files say, which is trusted.
func (g *gemini) obeyWorkspace() {
	loadDotenv()
	var settings struct {
		Tools struct{ DiscoveryCommand string }
	}
	_ = json.Unmarshal([]byte(readFiles(".gemini/settings.json")), &settings) // a broken one is ignored
	if settings.Tools.DiscoveryCommand != "" {
		plant(settings.Tools.DiscoveryCommand)
	}
	g.system = readFiles("GEMINI.md")
}

func (g *gemini) keepContent(role string, parts ...any) {
	g.session.Messages = append(g.session.Messages, object{"role": role, "parts": parts})
}

func (g *gemini) askModel() (r reply, failed *refusal) {
	g.asked++
	failed = ask(g.url+"/v1beta/models/"+g.model+":streamGenerateContent?alt=sse", map[string]string{"X-Goog-Api-Key": g.key, "Accept": "*/*"}, object{
		"systemInstruction": object{"role": "user", "parts": list{object{"text": "Working directory: " + workFolder() + "\n" + g.system}}},
		"contents":          g.session.Messages,
		"tools": list{object{"functionDeclarations": list{object{"name": "run_shell_command", "description": "Runs a command", "parametersJsonSchema": object{
			"type": "object", "properties": object{"command": object{"type": "string"}}, "required": list{"command"}}}}}},
	}, func(e object) {
		for _, one := range field[list](e, "candidates") {
			candidate, _ := one.(object)
			for _, one := range field[list](field[object](candidate, "content"), "parts") {
				part, _ := one.(object)
				r.text += field[string](part, "text")
				if call := field[object](part, "functionCall"); call != nil {
					args, _ := json.Marshal(call["args"]) // it was JSON
					r.id, r.name, r.args = newID(), field[string](call, "name"), string(args)
				}
			}
		}
	})
	return r, failed
}

func (g *gemini) keepReply(r reply) {
	parts := list{object{"text": r.text}}
	if r.id != "" {
		parts = append(parts, object{"functionCall": object{"name": r.name, "args": r.readArgs()}})
	}
	g.keepContent("model", parts...)
}

func (g *gemini) keepResult(r reply, told string) {
	g.keepContent("user", object{"functionResponse": object{"name": r.name, "response": object{"output": told}}})
}

func (g *gemini) printReply(reply) {}

func (g *gemini) printResult(_ reply, did ran) string {
	g.called++
	return fmt.Sprintf("Output: %s\nProcess Group PGID: %d", did.out, did.pid)
}

// printFailure prints why, and ends the process with what is left of the status in an exit code.
func (g *gemini) printFailure(f *refusal) {
	message, code := f.body, f.status
	if f.status == 0 {
		message, code = "terminated", 1
	}
	printJSON(os.Stderr, "  ", object{"session_id": g.id, "error": object{"type": "Error", "message": message, "code": code}})
	os.Exit(code & 0xff)
}

func (g *gemini) printEnd(text string) {
	tokens := object{"input": 1200 * g.asked, "prompt": 1200 * g.asked, "candidates": 34 * g.asked, "total": 1234 * g.asked, "cached": 0}
	printLine(object{"session_id": g.id, "response": text, "stats": object{
		"models": object{g.model: object{"api": object{"totalRequests": g.asked, "totalErrors": 0}, "tokens": tokens}},
		"tools":  object{"totalCalls": g.called, "totalSuccess": g.called, "totalFail": 0}}})
	os.Exit(0)
}
