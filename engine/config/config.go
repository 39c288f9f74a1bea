// Package config reads the settings of uwf: a file in the repository, one in the
// user's home, and the environment. It is pure: files are read by a function of
// the caller, the environment is given, and nothing is ever written.
//
// # Which source wins
//
// What a person chose for one run by flags (Choice) goes before all, overrides for roles among it, then the variables
// UWF_MODEL, UWF_PROVIDER, UWF_BASE_URL, UWF_API_KEY, UWF_AGENT and UWF_BUILTIN_ALLOW_SHELL.
// Which model and agent work where nothing else is said, and the provider of that model, is
// the person's choice before the repository's: ~/.uwf/config.yaml goes first. For all else
// the repository's .uwf/config.yaml is asked first, then ~/.uwf/config.yaml, then the
// environment for what it holds for everyone (OPENAI_API_KEY and the like): the first one that
// says something about a setting wins, for maps (providers, models, agents, overrides) name by
// name. A flag for all roles goes before overrides for single ones, too. A model of
// the repository's that can't be used here gives way to the person's own.
//
// Some settings protect the user and are never loosened by the nearer file: of two
// limits the lower one counts, of two sandbox settings the stricter one (and a
// repository's file that nobody trusts never switches off what is on by default), and
// allowShell needs every file that mentions it. What a repository's file wants of the
// machine (programs that run as agents, the shell, the open network, places that confined
// agents may use besides their own) counts once the user consents to it, see package
// consent; until then it is as if it were not said. So does a place for threads (state.remote)
// that is no remote of the checkout. That a repository's own credential
// helper is run comes from the user's file alone. Redaction settings add up.
//
// A policy (~/.uwf/policy.yaml, or one that a job is given) goes before all of these, flags and
// variables among them: it only makes settings stricter. What asks for more is told so (Policies.Held),
// and a model or an agent that it does not allow is refused where it is used (PolicyError).
//
// # Keys
//
// A provider is taken whole from one source: its key and its base URL are never
// put together from two. A repository's file may come with an untrusted checkout;
// it may name a variable with a key only together with that vendor's own address,
// or with the address that the home file or the environment gives for the same
// variable, unless the caller trusts it (as CI does, which reads it from the
// default branch) or UWF_TRUST_REPO=1 is set. A provider that breaks this rule gets no
// key; a step that would use one of its models is refused (WithheldError).
package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
)

// Config is what all sources say together.
type Config struct {
	Providers map[string]Provider
	Models    map[string]Model // by alias
	Agents    map[string]Agent // by alias

	DefaultAgent string // alias; empty: builtin
	// AgentOverrides is workflow → role → agent alias; the role "*" is every role.
	AgentOverrides map[string]map[string]string
	DefaultModel   string // alias
	// ModelOverrides is workflow → role → model alias; the role "*" is every role.
	ModelOverrides map[string]map[string]string
	// ExtractModel is modelOverrides.extract: the alias of the model that takes the
	// fields out of an unreadable answer; NoExtract: none does. See ResolveExtract.
	ExtractModel string

	Limits     Limits
	Checks     Checks
	Workspace  Workspace
	Gateway    Gateway
	Fetch      Fetch
	MCP        map[string]MCPServer // by the name that agents know
	Sandbox    Sandbox
	Confine    Confine
	Redact     Redact
	State      State
	AllowShell bool // the builtin agent may run commands

	// Policies are what the organisation allows. They are kept: see HighestLimits for what is said
	// beside the settings.
	Policies Policies

	// Origins says where a setting comes from: by its path ("defaultModel",
	// "providers.openai"), the file with line and column, or "$" and the variable.
	Origins map[string]string
	// Warnings are things that work but should be changed, one sentence each.
	Warnings []string

	// chosenModels are aliases, and chosenAgents what was written, of this run's choice.
	chosenModels, chosenAgents perRole
	// personal is the alias of the model that the person's own settings choose; empty: none.
	personal string

	secrets []redact.Secret
	lost    map[string]Problem // models whose provider is defined nowhere, by alias
	// withheld are the providers of an untrusted repository's file that get no key, by name.
	withheld  map[string]Withheld
	refused   []Withheld        // those, and the ones in whose place the person's own are
	variables map[string]string // that headers of MCP servers are made of
	// demands are what the repository's file wants of this machine; unconsented are those
	// that count for nothing.
	demands, unconsented []consent.Demand
	withoutPlace         bool // the place of the threads that it names is among these

	shared  string            // the repository's file: its settings are for everybody
	inCI    bool              // there is no file of the user's own
	files   []*Config         // what each file says by itself
	sources map[string]string // of variables that matter: where they are set
}

// Kind is the protocol that a provider speaks.
type Kind string

// The protocols.
const (
	OpenAI    Kind = "openai"    // chat completions, below a base URL that ends in /v1 or the like
	Anthropic Kind = "anthropic" // messages, below a base URL without /v1
	Gemini    Kind = "gemini"    // Google's generateContent, below a base URL without /v1beta
)

// Wires are the ways of asking a model that uwf knows, by their names in settings.
func Wires() []string { return []string{"chat", "responses", "messages", "gemini"} }

// Provider is a service that runs models.
type Provider struct {
	BaseURL   string
	APIKeyEnv string // variable that holds the key
	APIKey    Key    // empty: the variable is not set, or no key is needed
	Kind      Kind
	Wires     []string // the wires that it speaks, of Wires(); never empty after reading
}

// Key is a provider's key. It prints as a placeholder in every format; Reveal is
// the only way to the value.
type Key string

const hiddenKey = "[redacted:key]"

// Reveal is the key itself.
func (k Key) Reveal() string { return string(k) }

// String hides the key.
func (k Key) String() string {
	if k == "" {
		return ""
	}
	return hiddenKey
}

// GoString hides the key from %#v.
func (k Key) GoString() string { return `"` + k.String() + `"` }

// MarshalText hides the key from JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalYAML hides the key from YAML.
func (k Key) MarshalYAML() (any, error) { return k.String(), nil }

// Model is one model of a provider.
type Model struct {
	Provider  string
	Name      string // as the provider calls it
	Window    int    // tokens; 0: unknown
	MaxOutput int    // tokens; 0: unknown
	Reasoning bool   // it thinks before it answers, and goes on from its thoughts
	Price     Price
}

// Price is in US dollars per million tokens. What is nil is unknown; 0 is a price.
type Price struct {
	Input, Output *float64
	CachedInput   *float64 // of input that is read from a prompt cache; nil: as other input
	CacheWrite    *float64 // of input that is written to one, for minutes; nil: a quarter more than other input
	AsOf          string   // the day that it was looked up, 2026-11-23; empty: nobody says
}

// Known says whether the price is, as far as it is needed.
func (p Price) Known() bool { return p.Input != nil && p.Output != nil }

// OfCachedInput is the price of input that is read from a prompt cache: that of other
// input, where none is said. The price must be known.
func (p Price) OfCachedInput() float64 { return *cmp.Or(p.CachedInput, p.Input) }

// OfCacheWrite is the price of input that is written to a prompt cache: a quarter more than
// that of other input, as Anthropic takes it, where none is said. The price must be known.
func (p Price) OfCacheWrite() float64 {
	if p.CacheWrite != nil {
		return *p.CacheWrite
	}
	return 1.25 * *p.Input
}

// Agent is a program that works on steps.
type Agent struct {
	Command string // empty: the agent of uwf with the alias's name
	Args    []string
	Env     map[string]string
	// Login is OwnLogin where the program uses the login that it has on this machine, in the
	// place of the gateway. Only the user's own file says so.
	Login string
}

// OwnLogin is a program's own login, which uwf neither sees nor counts. JobLogin is a CI job's
// own token in its place, see app.Job.
const (
	OwnLogin = "own"
	JobLogin = "job"
)

// Limits end a thread, or a step, that goes on for too long; 0: no limit.
type Limits struct {
	moderator.Limits
	StepTime time.Duration         // of one step
	Month    moderator.MonthLimits // of all threads together
}

// Tighten gives the lower of two limits, each by itself.
func (l Limits) Tighten(o Limits) Limits {
	return Limits{l.Limits.Tighten(o.Limits), moderator.LowerLimit(l.StepTime, o.StepTime), l.Month.Tighten(o.Month)}
}

// Workspace says how the folder that agents work in is made ready for them.
type Workspace struct {
	Prepare    []string // command lines for sh, one after the other: npm ci
	Submodules bool     // it has their files, too
}

// Checks says what the checks run that roles name.
type Checks struct {
	Commands map[string]string // name → command line for sh
	Strict   bool              // what fails on the base as well keeps an answer from being taken, too
	Time     time.Duration     // of each check; 0: DefaultCheckTime
	Protect  []string          // more patterns of files that decide what checks say, as in .gitignore
}

// DefaultCheckTime is how long a check may take where nobody says anything.
const DefaultCheckTime = 10 * time.Minute

// Gateway bounds what agents may send to their models.
type Gateway struct {
	MaxBody int64 // bytes of one request; 0: the default
}

// Fetch says what agents may get from the web through uwf.
type Fetch struct {
	Hosts []string // names, *.name for all below it, or AnyHost
}

// AnyHost stands in a list for every host.
const AnyHost = "*"

// FetchHosts are the hosts that agents may fetch pages of. AnyHost counts for nothing in CI,
// and where agents reach nothing but the gateway: there every host is listed by its name.
func (c *Config) FetchHosts() []string {
	hosts := slices.Clone(c.Fetch.Hosts)
	if c.inCI || c.Confine.Network == NetworkGateway {
		hosts = slices.DeleteFunc(hosts, func(h string) bool { return h == AnyHost })
	}
	return hosts
}

// Sandbox says how an agent's process is confined.
type Sandbox string

// The settings, from the loosest to the strictest.
const (
	SandboxOff     Sandbox = "off"  // they run as uwf's own user
	SandboxAuto    Sandbox = "auto" // as far as the machine can
	SandboxRequire Sandbox = "require"
)

// Confine says what confined agents may use besides the workspace and the system.
type Confine struct {
	Network Network
	Read    []string // absolute paths
	Write   []string // absolute paths
}

// Network is what confined agents reach.
type Network string

// The networks, from the loosest to the strictest.
const (
	NetworkOpen    Network = "open"
	NetworkGateway Network = "gateway" // the model, through uwf, and nothing else
)

// Redact adds to what is redacted by default.
type Redact struct {
	Env       []string          // names of variables that hold secrets
	Patterns  map[string]string // name → regular expression (RE2)
	Allow     []string          // what is no secret although it looks like one: see redact.CheckAllow
	MinLength int               // of a secret in bytes, 4 to 12; 0: the default
}

// State says where threads are kept.
type State struct {
	Branch string // empty: uwf-state
	Remote string // name or URL of a git remote; empty: this repository
	// CredentialHelper says whose of git's credential helpers are asked; empty: User's.
	CredentialHelper CredentialHelper
}

// CredentialHelper says whose credential helpers of git's settings are asked for what a
// remote wants to know. They are programs.
type CredentialHelper string

// The settings, from the strictest to the loosest.
const (
	CredentialsOfUser       CredentialHelper = "user"       // those of the user and the system
	CredentialsOfRepository CredentialHelper = "repository" // those of .git/config besides
)

// SecretsOf lists every secret that the configuration and the environment it was
// loaded with hold: for the redactor.
func SecretsOf(c *Config) []redact.Secret {
	return append([]redact.Secret(nil), c.secrets...)
}

// RedactOptions are the options of a Redactor for this configuration.
func (c *Config) RedactOptions() redact.Options {
	o := redact.Options{Secrets: SecretsOf(c), Allow: c.Redact.Allow, MinLength: c.Redact.MinLength}
	for _, name := range sortedKeys(c.Redact.Patterns) {
		o.Patterns = append(o.Patterns, redact.Pattern{Name: name, Expr: c.Redact.Patterns[name]})
	}
	return o
}
