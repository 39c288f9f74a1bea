package settings

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/internal/modeltest"
)

// presetKey is the key that each fake provider takes.
const presetKey = "not-a-real-key-330147"

// person is somebody with a fresh home and a repository without a remote, who types.
type person struct {
	*testing.T
	dir     string
	environ []string
	as      *syscall.SysProcAttr // nil: as who runs the tests
}

func newPerson(t *testing.T) *person {
	home, dir := t.TempDir(), t.TempDir()
	p := &person{T: t, dir: dir, environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}}
	p.begin()
	return p
}

// begin makes a repository with a commit.
func (p *person) begin() {
	p.Helper()
	for _, argv := range [][]string{
		{"git", "config", "--global", "user.name", "someone"}, {"git", "config", "--global", "user.email", "someone@example.com"},
		{"git", "init", "--quiet"}, {"git", "commit", "--quiet", "--allow-empty", "--message=first"},
	} {
		if code, out, errs := p.types("", argv...); code != 0 {
			p.Fatal(argv, out, errs)
		}
	}
}

// types runs a program, and gives its exit code and what it printed.
func (p *person) types(stdin string, argv ...string) (code int, stdout, stderr string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), argv[0], argv[1:]...)
	for _, set := range p.environ { // the person's uwf, and not that of the tests
		if dirs, ok := strings.CutPrefix(set, "PATH="); ok && argv[0] == "uwf" && p.as != nil {
			cmd.Path = filepath.Join(filepath.SplitList(dirs)[0], "uwf")
		}
	}
	cmd.SysProcAttr = p.as
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.dir, p.environ, strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.Fatal(argv, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// hasNoThread checks that a run which was refused left nothing behind.
func (p *person) hasNoThread() {
	p.Helper()
	if _, out, _ := p.types("", "uwf", "thread", "list", "--all"); strings.Contains(out, `"thread"`) {
		p.Errorf("there is a thread: %s", out)
	}
	if _, out, _ := p.types("", "git", "for-each-ref", "refs/uwf", "refs/heads/uwf", "refs/heads/uwf-state"); out != "" {
		p.Errorf("there are refs: %s", out)
	}
}

// newInternet lets a person reach a handler under the real addresses of hosts, and nothing else:
// by a proxy, and a certificate of its own. All of uwf is as it is.
func newInternet(t *testing.T, hosts []string, h http.Handler) (environ []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "internet.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(h)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	known := map[string]bool{}
	for _, host := range hosts {
		known[host+":443"] = true
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || !known[r.Host] {
			http.Error(w, "no such host", http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", secure.Listener.Addr().String())
		if err != nil {
			_ = client.Close()
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		// Who closes his end ends both: there is nothing to report to anybody.
		pipe := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close(); _ = from.Close() }
		go pipe(server, client)
		go pipe(client, server)
	}))
	t.Cleanup(proxy.Close)
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + file}
}

// presetRow is a provider as a person chooses it. What is not here is as uwf knows it: the real
// address, the model, the price.
type presetRow struct {
	name  string
	wires []modeltest.Wire // that the provider speaks
	setup []string         // further flags of uwf setup
	local bool             // on this machine, at a port of the test's
	cost  float64          // that it tells with each answer
}

func presetRows() []presetRow {
	chat := []modeltest.Wire{modeltest.Chat}
	return []presetRow{
		{name: "openai", wires: []modeltest.Wire{modeltest.Chat, modeltest.Responses}},
		{name: "anthropic", wires: []modeltest.Wire{modeltest.Messages}},
		{name: "openrouter", wires: chat, cost: 0.001},
		{name: "gemini", wires: []modeltest.Wire{modeltest.Gemini, modeltest.Chat}},
		{name: "github-models", wires: chat},
		{name: "ollama", wires: chat, local: true},
		{name: "custom", wires: chat, setup: []string{"--base-url", "https://models.example.com/v1", "--model", "own", "--price", "1,2"}},
	}
}

// The rows are all presets that there are, and the address of one's own.
func TestPresetRows(t *testing.T) {
	var names []string
	for _, row := range presetRows() {
		names = append(names, row.name)
	}
	if got, want := strings.Join(names, " "), strings.Join(config.PresetNames(), " ")+" custom"; got != want {
		t.Errorf("the table has %s, uwf has %s", got, want)
	}
}

const readmePrompt = "The parser panics on an empty file"

// From each preset, Ollama and an address of one's own README's lines come to the thread's end:
// uwf setup, which tries the connection, and uwf run.
func TestPresetsRun(t *testing.T) {
	for _, row := range presetRows() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			preset := presetOf(row)
			model := &modeltest.Server{Wires: row.wires, Cost: row.cost, Models: []string{preset.Model.Name + ":latest"}}
			args, stdin := append([]string{"uwf", "setup", "--provider", row.name}, row.setup...), ""
			if row.local {
				s := httptest.NewServer(model)
				t.Cleanup(s.Close)
				args = append(args, "--base-url", s.URL+"/v1")
			} else {
				model.Key, stdin, args = presetKey, presetKey, append(args, "--api-key", "-")
				p.environ = append(p.environ, newInternet(t, []string{hostOf(t, row, preset)}, model)...)
			}
			if code, out, errs := p.types(stdin, args...); code != 0 || !strings.Contains(out, `"tested": true`) {
				t.Fatalf("uwf setup: exit code %d\n%s%s", code, out, errs)
			}
			code, out, errs := p.types("", "uwf", "run", "-p", readmePrompt)
			if code != 0 || !strings.Contains(out, `"status": "ended"`) {
				t.Fatalf("uwf run: exit code %d\n%s%s", code, out, errs)
			}
			if strings.Contains(out, `"unpriced": true`) {
				t.Errorf("it is not known what the thread cost: %s", out)
			}
			if strings.Contains(out+errs, presetKey) {
				t.Errorf("it prints the key: %s%s", out, errs)
			}
		})
	}
}

func presetOf(row presetRow) config.Preset {
	for _, preset := range config.Presets() {
		if preset.Name == row.name {
			return preset
		}
	}
	return config.Preset{BaseURL: row.setup[1]}
}

func hostOf(t *testing.T, row presetRow, preset config.Preset) string {
	u, err := url.Parse(preset.BaseURL)
	if err != nil || u.Hostname() == "" {
		t.Fatal(row.name, preset.BaseURL, err)
	}
	return u.Hostname()
}

// Where something is missing a run says so in one line, with what to type, and leaves no thread.
func TestPresetsRefuse(t *testing.T) {
	here := httptest.NewServer(&modeltest.Server{Wires: []modeltest.Wire{modeltest.Chat}, Models: []string{"llama3:latest", "qwen2.5:7b"}})
	t.Cleanup(here.Close)
	const gone = "127.0.0.1:1" // nobody listens on the first port
	run := []string{"uwf", "run", "-p", readmePrompt}
	type row struct {
		name    string
		environ []string
		before  []string // uwf setup, as somebody typed it who did not try it
		run     []string
		want    string // its one line
	}
	rows := []row{
		{name: "nothing", run: run, want: "role developer: no model is configured: run uwf setup, or set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or GEMINI_API_KEY, or say --provider ollama --model NAME for one on this machine"},
		{name: "no such provider", run: append(run, "--provider", "openia"), want: `read the configuration: --provider: there is no provider "openia"; did you mean "openai"?`},
		{name: "custom, not set up", run: append(run, "--provider", "custom"),
			want: `read the configuration: --provider: there is no provider "custom"; there are anthropic, gemini, github-models, ollama, openai, openrouter; any other one has an address: uwf setup --provider custom --base-url ADDRESS --model NAME, or UWF_BASE_URL`},
		{name: "custom without an address", run: []string{"uwf", "setup", "--provider", "custom", "--model", "own"}, want: "nobody is here to be asked: say --base-url ADDRESS (see: uwf setup --help)"},
		{name: "custom without a model", run: []string{"uwf", "setup", "--provider", "custom", "--base-url", "https://models.example.com/v1"}, want: "nobody is here to be asked: say --model NAME (see: uwf setup --help)"},
		{name: "an address without a model", environ: []string{"UWF_BASE_URL=https://models.example.com/v1"}, run: run, want: `read the configuration: $UWF_BASE_URL: there is no model for this address; name it: --model NAME, or UWF_MODEL`},
		{name: "custom without a price, with a limit on cost", before: []string{"--provider", "custom", "--base-url", "https://models.example.com/v1", "--model", "own"},
			run: append(run, "--cost-usd", "1"), want: "a limit of $1 on the thread's cost can't be kept: role developer: what the model custom costs is unknown: set its price for a million tokens, 0 where it costs nothing: uwf config set models.custom.price.input DOLLARS models.custom.price.output DOLLARS"},
		{name: "custom, no way there", environ: []string{"HTTPS_PROXY=http://" + gone}, before: []string{"--provider", "custom", "--base-url", "https://models.example.com/v1", "--model", "own", "--price", "0"},
			run: run, want: "model custom: models.example.com can't be reached: connection refused; check providers.custom.baseUrl (uwf setup) for a slip of the finger, the network, a firewall, and HTTPS_PROXY"},
		{name: "custom, nobody listens", before: []string{"--provider", "custom", "--base-url", "http://" + gone + "/v1", "--model", "own"},
			run: run, want: "model custom: " + gone + " can't be reached: connection refused; check providers.custom.baseUrl (uwf setup) for a slip of the finger"},
		{name: "ollama, nobody listens", before: []string{"--provider", "ollama", "--base-url", "http://" + gone + "/v1"},
			run: run, want: "model ollama: " + gone + " can't be reached: connection refused; start it (ollama serve), or say where it listens with providers.ollama.baseUrl (uwf setup)"},
		{name: "ollama, the model is not there", before: []string{"--provider", "ollama", "--base-url", here.URL + "/v1"},
			run: run, want: "model ollama: ollama has no model qwen3; pull it first: ollama pull qwen3: there are llama3, qwen2.5:7b"},
		{name: "ollama, a slip", before: []string{"--provider", "ollama", "--base-url", here.URL + "/v1", "--model", "lama3"},
			run: run, want: "model ollama: ollama has no model lama3; did you mean --model llama3? pull it first: ollama pull lama3"},
	}
	for _, preset := range config.Presets() {
		if preset.APIKeyEnv == "" {
			continue
		}
		rows = append(rows,
			row{name: preset.Name + " without a key", before: []string{"--provider", preset.Name}, run: run,
				want: `role developer: use model "` + preset.Name + `" of provider "` + preset.Name + `": the provider's key is not set: set ` + preset.APIKeyEnv + ` in the environment or in ~/.uwf/.env (uwf setup asks for it)`},
			row{name: preset.Name + ", not set up", run: append(run, "--provider", preset.Name),
				want: `read the configuration: --provider: the provider "` + preset.Name + `" has no key here; set ` + preset.APIKeyEnv + ` in the environment or in ~/.uwf/.env (uwf setup --provider ` + preset.Name + `)`},
			row{name: preset.Name + " with an empty key", environ: []string{preset.APIKeyEnv + "="}, before: []string{"--provider", preset.Name}, run: run,
				want: "the provider's key is not set: set " + preset.APIKeyEnv},
		)
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			p.environ = append(p.environ, row.environ...)
			if row.before != nil {
				if code, out, errs := p.types("", append([]string{"uwf", "setup", "--no-test"}, row.before...)...); code != 0 {
					t.Fatalf("uwf setup: exit code %d\n%s%s", code, out, errs)
				}
			}
			code, _, errs := p.types("", row.run...)
			_, said, found := strings.Cut("\n"+errs, "\nuwf: ")
			if code != 2 || !found || !strings.Contains(said, row.want) || strings.Count(strings.TrimSpace(said), "\n") > 0 {
				t.Errorf("exit code %d, it says\n%s\nwant one line with\n%s", code, errs, row.want)
			}
			p.hasNoThread()
		})
	}
}
