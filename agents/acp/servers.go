package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/internal/text"
)

// Server is a program that speaks the protocol, and what it needs.
type Server struct {
	Name    string // of the agent
	Title   string // as people know it
	Program string // on PATH, or its path
	Args    []string
	// Env are its own variables, NAME=value, in which $UWF_GATEWAY_URL, $UWF_GATEWAY_KEY and
	// $UWF_MODEL are filled in.
	Env []string
	// Mode is the session's; empty: as the server begins.
	Mode string
	// Meta is the _meta of session/new, a JSON object; nil: none.
	Meta   json.RawMessage
	Policy Policy
	// Versions are those that were run with uwf; none: it was never run with it.
	Versions program.Range
	// Wires are the APIs in which it asks a model, the best first; none: nobody knows.
	Wires []string
	// Install says how people get it; empty: it is none of the list.
	Install string
	// Credential is the file below HOME with its own login; empty: it has none that can be lent.
	Credential string
	// OwnServers: it talks to its makers' servers alone, and so needs login: own.
	OwnServers bool

	hint  string                           // what it may be where it does not even begin; empty: nothing
	cli   *cli.CLI                         // whose HOME and environment it has, too; nil: nobody's
	files func(v values) map[string]string // below HOME; nil: none
}

// EnvModel stands for the model's name in a [Server]'s Env.
const EnvModel = "UWF_MODEL"

// Untested says that nobody has run the server with uwf.
func (s Server) Untested() bool { return s.Versions.Tested == "" }

// Foreign is what the parent of such an agent has to know.
func (s Server) Foreign() agents.Foreign {
	return agents.Foreign{Program: s.Program, Install: s.Install, Tried: s.Versions, Credential: s.Credential, Hide: s.hiddenNames()}
}

// hiddenNames are of files in a workspace that it obeys whatever it is told.
func (s Server) hiddenNames() []string {
	if s.cli == nil {
		return nil
	}
	return s.cli.Hide
}

// All are the servers that uwf knows, in the order in which people are shown them. What the
// untested ones are given is from their documentation.
func All() []Server {
	return []Server{
		fromCLI("opencode", Server{
			Name: "opencode-acp", Args: []string{"acp", "--pure"},
			hint: "opencode acp listens on loopback, which confine.network: gateway does not allow: there, use the agent opencode",
		}),
		fromCLI("gemini-cli", Server{Name: "gemini-acp", Args: []string{"--acp"}, Env: []string{"GEMINI_MODEL=$UWF_MODEL"}, Mode: "yolo"}),
		{
			Name: "goose", Title: "goose", Program: "goose", Args: []string{"acp"}, Wires: []string{"chat"}, Install: "see https://block.github.io/goose",
			Env: []string{
				"GOOSE_MODE=auto", "GOOSE_DISABLE_KEYRING=1", "GOOSE_PROVIDER=openai", "GOOSE_MODEL=$UWF_MODEL",
				"OPENAI_HOST=$UWF_GATEWAY_URL", "OPENAI_BASE_PATH=v1/chat/completions", "OPENAI_API_KEY=$UWF_GATEWAY_KEY",
			},
		},
		{
			Name: "hermes", Title: "Hermes Agent", Program: "hermes", Args: []string{"acp"}, Wires: []string{"chat"}, Install: "see https://hermes-agent.nousresearch.com",
			files: hermesFiles,
		},
		{
			Name: "cursor", Title: "Cursor CLI", Program: "cursor-agent", Args: []string{"acp"}, Install: "see https://cursor.com/cli",
			Credential: ".config/cursor/auth.json", OwnServers: true,
		},
	}
}

// Find finds a server by its agent's name.
func Find(name string) (Server, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return all[i], true
}

// fromCLI makes a server of a CLI that speaks the protocol, too.
func fromCLI(name string, s Server) Server {
	c, _ := cli.Find(name)
	s.Title, s.Program, s.Versions, s.Install, s.Credential = c.Title, c.Program, c.Versions, c.Install(), c.Credential
	s.Wires = c.Wires
	s.cli = &c
	return s
}

// hermesFiles are Hermes Agent's settings: it reads its provider from nowhere else. JSON is YAML.
func hermesFiles(v values) map[string]string {
	b, err := text.EncodeJSON(map[string]any{"model": map[string]string{
		"default": v.model, "provider": "custom", "base_url": v.url + "/v1", "api_key": v.key,
	}})
	if err != nil {
		return nil // of texts alone it can be written
	}
	return map[string]string{".hermes/config.yaml": string(b)}
}

// values are what is known when a server starts.
type values struct {
	url   string // the gateway's, without a version; empty: the server's own login
	key   string // for the gateway
	model string // as the gateway knows it
}

func readValues(s *agents.Session) values {
	v := values{url: s.Getenv(gateway.EnvURL), key: s.Getenv(gateway.EnvKey)}
	if m := s.Task.Model; m != nil && v.url != "" {
		v.model = m.Alias
	}
	return v
}

// expandVariable fills the values into a variable, NAME=value.
func (v values) expandVariable(kv string) (string, error) {
	known := map[string]string{gateway.EnvURL: v.url, gateway.EnvKey: v.key, EnvModel: v.model}
	var unknown error
	filled := os.Expand(kv, func(name string) string {
		value, ok := known[name]
		if !ok {
			unknown = fmt.Errorf("variable %q: $%s can't be filled in, only $%s, $%s and $%s", kv, name, gateway.EnvURL, gateway.EnvKey, EnvModel)
		}
		return value
	})
	return filled, unknown
}

// environ makes HOME ready, and returns all of the server's environment. A server of the list
// finds only the variables for models that it is known to read, others those that many read.
func (s Server) environ(session *agents.Session, v values) (env []string, err error) {
	if s.cli != nil {
		env, err = s.cli.Prepare(session)
	} else {
		env = cli.Environ(session, s.Install == "")
	}
	if err == nil && s.files != nil {
		err = cli.WriteHome(session.Getenv("HOME"), s.files(v))
	}
	for _, kv := range s.Env {
		filled, uerr := v.expandVariable(kv)
		if err == nil {
			err = uerr
		}
		env = append(env, filled)
	}
	return env, err
}
