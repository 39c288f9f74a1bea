package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/united-workforce/uwf/engine/config/table"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// Sources are where settings come from. A path that is empty is not read, and a
// file that doesn't exist (fs.ErrNotExist) says nothing; any other failure to read
// is an error.
type Sources struct {
	RepoFile string // .uwf/config.yaml of the repository
	HomeFile string // ~/.uwf/config.yaml
	EnvFile  string // ~/.uwf/.env: variables that the environment doesn't have
	// PolicyFile is ~/.uwf/policy.yaml, which goes before all else; Policy is the text of another
	// one (nil: there is none), and PolicyName what that is called in messages.
	PolicyFile string
	Policy     []byte
	PolicyName string
	Env        []string
	ReadFile   func(path string) ([]byte, error)
	// RepoTrusted: the repository's file is as trustworthy as the user's own, as in
	// CI, where it is read from the default branch.
	RepoTrusted bool
	// Consented says whether the user allowed the repository exactly these demands; nil:
	// nothing was allowed. ConsentDir is where that is kept.
	Consented  func([]consent.Demand) bool
	ConsentDir string
	// Allowed says whether any consent of the user's has a demand in it, whatever else it has;
	// nil: none has.
	Allowed func(consent.Demand) bool
	// OwnRemote says whether a URL or path is that of a remote of the checkout; nil: none is.
	OwnRemote func(address string) bool
	// Fingerprint is the SHA-256, in hexadecimal digits, of the repository's file that a
	// word of a command line names; empty: it names none. Nil: as empty.
	Fingerprint func(word string) string
	// Choice is what the person chose for this run.
	Choice Choice
	// DefaultSandbox counts where no source says anything of the sandbox. Empty: auto.
	DefaultSandbox Sandbox
}

// Load reads all sources and puts them together as the package comment says.
// Everything that is wrong is in one *InvalidError.
func Load(s Sources) (*Config, error) {
	l := &loader{s: s}
	repo, home := l.loadFile(s.RepoFile), l.loadFile(s.HomeFile)
	loadPolicies(l)
	l.loadEnvironment()
	if l.err != nil {
		return nil, l.err
	}
	for _, p := range l.bounds.all {
		tellLoosened(l, p, repo)
		tellLoosened(l, p, home)
	}
	demands, unconsented, withoutPlace := l.settleDemands(repo, home)
	// The repository's own programs: even where it is trusted, that is up to each user.
	l.refuseInRepo(repo, "say whose credential helpers are run", "put this into ~/.uwf/config.yaml", "state.credentialHelper")
	guarded := slices.ContainsFunc(l.bounds.all, func(p *policy) bool { return p.agents != nil || p.models != nil })
	for _, name := range sortedKeys(repo.Agents) {
		if guarded {
			l.refuseInRepo(repo, "set variables of agents, which may lead around the policy", "remove it, or put it into ~/.uwf/config.yaml", table.Join(table.Join("agents", name), "env"))
		}
		if repo.Agents[name].Login == OwnLogin {
			l.refuseInRepo(repo, "lend a login of the user's", "put this into ~/.uwf/config.yaml", table.Join(table.Join("agents", name), "login"))
		}
	}
	l.warnKeys(repo, s.RepoFile)
	c := mergeConfigs(repo, home)
	c.demands, c.unconsented, c.withoutPlace = demands, unconsented, withoutPlace
	l.applyShellConsent(c, repo, home)
	l.mergeSandbox(c, repo, home)
	l.readChoice(c)
	l.fromEnvironment(c)
	if !l.isTrusted() {
		l.withholdKeys(c, repo, home)
	}
	setZeroPrices(c)
	l.lookupKeys(c)
	l.lookupHeaders(c)
	l.checkNames(c)
	if !l.isTrusted() {
		ofRepo := func(alias string) bool {
			file, _, _ := splitOrigin(c.Origins[table.Join("models", alias)])
			return file == l.s.RepoFile
		}
		l.holdPrices(c, pricesOf(home, c), "limits on cost (a model of ~/.uwf/config.yaml costs what you say)", ofRepo)
	}
	for _, p := range l.bounds.all {
		applyPolicy(l, p, c)
	}
	if len(l.problems) > 0 {
		return nil, &InvalidError{Problems: l.problems}
	}
	l.gatherSecrets(c)
	c.Warnings = l.warnings
	c.Policies = l.bounds
	c.sources = l.sourcesOf(c)
	c.shared, c.inCI = l.s.RepoFile, l.s.RepoTrusted
	return c, nil
}

// loader holds what is found while loading.
type loader struct {
	s        Sources
	env      map[string]variable
	problems []Problem
	warnings []string
	bounds   Policies
	err      error
}

// Environment is the source of a variable that the process has.
const Environment = "the environment"

// sourcesOf says where the variables are set that a Config mentions.
func (l *loader) sourcesOf(c *Config) map[string]string {
	out := map[string]string{}
	for _, origin := range c.Origins {
		if name, ok := strings.CutPrefix(origin, "$"); ok {
			out[name] = l.env[name].source
		}
	}
	for _, p := range c.Providers {
		if p.APIKeyEnv != "" {
			out[p.APIKeyEnv] = l.env[p.APIKeyEnv].source
		}
	}
	return out
}

// variable is one of the environment, or of the .env file.
type variable struct {
	value  string
	source string // "the environment" or the path of the .env file
}

func (l *loader) addProblem(file, path, fix, format string, args ...any) {
	l.problems = append(l.problems, Problem{File: file, Path: path, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (l *loader) addWarning(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// readIfThere is the content of a file; ok is false where there is none.
func (l *loader) readIfThere(path string) (data []byte, ok bool) {
	if path == "" || l.err != nil {
		return nil, false
	}
	if l.s.ReadFile == nil {
		l.err = errors.New("read the configuration: no function to read files with")
		return nil, false
	}
	data, err := l.s.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		l.err = fmt.Errorf("read the configuration %s: %w; make it readable or remove it", path, err)
		return nil, false
	}
	return data, true
}

func (l *loader) loadFile(path string) *Config {
	data, ok := l.readIfThere(path)
	if !ok {
		return &Config{Origins: map[string]string{}}
	}
	c, problems := readFile(path, data)
	l.problems = append(l.problems, problems...)
	return c
}

// loadEnvironment puts the environment and the .env file together; a variable that
// the environment has, even an empty one, is never taken from the file.
func (l *loader) loadEnvironment() {
	l.env = map[string]variable{}
	if data, ok := l.readIfThere(l.s.EnvFile); ok {
		vars, err := ParseEnv(data)
		if err != nil {
			// The library's message repeats the text, which may be a key.
			l.addProblem(l.s.EnvFile, "", "write NAME=value lines", "is no .env file")
		}
		for k, v := range vars {
			l.env[k] = variable{v, l.s.EnvFile}
		}
	}
	for _, e := range l.s.Env {
		if k, v, ok := strings.Cut(e, "="); ok && k != "" {
			l.env[k] = variable{v, Environment}
		}
	}
}

// ParseEnv reads the text of a .env file. Its errors repeat nothing of the text.
func ParseEnv(data []byte) (vars map[string]string, err error) {
	if len(data) > strictyaml.MaxFile {
		return nil, ErrInvalid
	}
	defer func() {
		if recover() != nil { // a parser of someone else's, on a file of someone else's
			vars, err = nil, ErrInvalid
		}
	}()
	return godotenv.UnmarshalBytes(data)
}

// lookupVariable is the value of a variable that is set and not empty.
func (l *loader) lookupVariable(name string) (variable, bool) {
	v, ok := l.env[name]
	return v, ok && v.value != ""
}

func (l *loader) valueInEnv(name string) string { return l.env[name].value }

func (l *loader) isTrusted() bool { return l.s.RepoTrusted || isOn(l.valueInEnv("UWF_TRUST_REPO")) }

func isOn(v string) bool { return v == "1" || strings.EqualFold(v, "true") }

// refuseInRepo refuses settings that a file of the repository may not hold.
func (l *loader) refuseInRepo(repo *Config, message, fix string, keys ...string) {
	for _, key := range keys {
		if origin, ok := repo.Origins[key]; ok {
			l.problems = append(l.problems, problemAt(origin, key, "a file of the repository may not "+message, fix))
		}
	}
}

// problemAt is a problem where a setting comes from.
func problemAt(origin, path, message, fix string) Problem {
	file, line, col := splitOrigin(origin)
	return Problem{File: file, Line: line, Col: col, Path: path, Message: message, Fix: fix}
}

// withholdKeys finds the providers of an untrusted checkout's file that would send a key of
// this machine to an address of the file's own choice. They get no key, and a step that
// would use one of their models is refused; who asks no model is not held up by it.
func (l *loader) withholdKeys(c, repo, home *Config) {
	c.withheld = map[string]Withheld{}
	for _, name := range sortedKeys(repo.Providers) {
		p, path := repo.Providers[name], table.Join("providers", name)
		if p.APIKeyEnv == "" {
			continue
		}
		if v, ok := vendorAt(p.BaseURL); ok && v.APIKeyEnv == p.APIKeyEnv {
			continue
		}
		if l.isVouched(home, p) {
			continue
		}
		w := newWithheld(repo.Origins[path], path, p, trustCommand(home, name, p))
		c.refused = append(c.refused, w)
		if c.Origins[path] == repo.Origins[path] { // else it is another one in this run
			c.withheld[name] = w
		}
	}
}

// newWithheld says what is wrong with a provider, and how to let it have its key.
func newWithheld(origin, path string, p Provider, command string) Withheld {
	return Withheld{Command: command, Problem: problemAt(origin, path,
		fmt.Sprintf("a file of the repository may not send the key in %s to %s", p.APIKeyEnv, p.BaseURL),
		"put this provider into ~/.uwf/config.yaml if you trust that address with the key: "+command+"; or set UWF_TRUST_REPO=1 if you trust this repository")}
}

// trustCommand puts a provider of the repository into ~/.uwf/config.yaml, under a name that
// is free there: the address and the variable are what counts.
func trustCommand(home *Config, name string, p Provider) string {
	free := name
	for n := 2; home.Providers[free].BaseURL != ""; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	at := table.Join("providers", free)
	return fmt.Sprintf("uwf config set %s %s %s %s", text.ShellWord(at+".baseUrl"), text.ShellWord(p.BaseURL), text.ShellWord(at+".apiKeyEnv"), text.ShellWord(p.APIKeyEnv))
}

// isVouched says whether the user's own settings send the same key to the same place.
func (l *loader) isVouched(home *Config, p Provider) bool {
	for _, h := range home.Providers {
		if h.APIKeyEnv == p.APIKeyEnv && sameURL(h.BaseURL, p.BaseURL) {
			return true
		}
	}
	for _, v := range knownVendors() {
		key, ok := l.lookupVariable(v.APIKeyEnv)
		base, set := l.lookupVariable(v.urlEnv)
		if ok && set && v.APIKeyEnv == p.APIKeyEnv && key.source == base.source && sameURL(base.value, p.BaseURL) {
			return true
		}
	}
	return false
}

// sameHost says whether two addresses are of one server, whatever their paths.
func sameHost(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	port := func(u *url.URL) string { return cmp.Or(u.Port(), map[string]string{"http": "80"}[u.Scheme], "443") }
	return errA == nil && errB == nil && ua.Host != "" && strings.EqualFold(ua.Hostname(), ub.Hostname()) && port(ua) == port(ub)
}

func sameURL(a, b string) bool {
	ua, errA := url.Parse(strings.TrimRight(a, "/"))
	ub, errB := url.Parse(strings.TrimRight(b, "/"))
	return errA == nil && errB == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host) && ua.Path == ub.Path
}

var position = lazyregexp.New(`^(.*):(\d+):(\d+)$`)

func splitOrigin(origin string) (file string, line, col int) {
	m := position.FindStringSubmatch(origin)
	if m == nil {
		return origin, 0, 0
	}
	if _, err := fmt.Sscan(m[2]+" "+m[3], &line, &col); err != nil {
		return origin, 0, 0
	}
	return m[1], line, col
}

func (l *loader) warnKeys(repo *Config, file string) {
	for _, name := range sortedKeys(repo.Providers) {
		if repo.Providers[name].APIKey != "" {
			l.addWarning("%s: providers.%s.apiKey: a key does not belong into a file that is committed; use apiKeyEnv", file, name)
		}
	}
}

// lookupKeys looks up each provider's key, but for those that get none.
func (l *loader) lookupKeys(c *Config) {
	for _, name := range sortedKeys(c.Providers) {
		if _, withheld := c.withheld[name]; withheld {
			continue
		}
		p := c.Providers[name]
		if p.APIKey == "" && p.APIKeyEnv != "" {
			p.APIKey = Key(strings.TrimSpace(l.valueInEnv(p.APIKeyEnv)))
			c.Providers[name] = p
		}
		if u, err := url.Parse(p.BaseURL); err == nil && u.Scheme == "http" && p.APIKey != "" && !isLoopback(u.Hostname()) {
			l.addWarning("provider %s: the key is sent unencrypted to %s; use https", name, p.BaseURL)
		}
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkNames finds names that refer to nothing. A model whose provider is defined
// nowhere is no mistake yet: who has models of several machines in one file may never
// use it here. It is warned of, and refused where a step asks for it.
func (l *loader) checkNames(c *Config) {
	unknown := func(origin, path, what, name string, names []string) (Problem, bool) {
		if name == "" || slices.Contains(names, name) {
			return Problem{}, false
		}
		return problemAt(origin, path, fmt.Sprintf("there is no %s %q", what, name), text.DidYouMean(name, names, text.KnownAre(names))), true
	}
	providers, models := sortedKeys(c.Providers), sortedKeys(c.Models)
	for _, alias := range models {
		path := table.Join("models", alias)
		if p, bad := unknown(cmp.Or(c.Origins[path+".provider"], c.Origins[path]), path+".provider", "provider", c.Models[alias].Provider, providers); bad {
			if c.lost == nil {
				c.lost = map[string]Problem{}
			}
			c.lost[alias] = p
			l.addWarning("%s; the model can't be used until then", p)
		}
	}
	known := func(origin, path, name string) {
		if p, bad := unknown(origin, path, "model", name, models); bad {
			l.problems = append(l.problems, p)
		}
	}
	known(c.Origins["defaultModel"], "", c.DefaultModel)
	if c.ExtractModel != NoExtract {
		known(c.Origins["modelOverrides."+extractScenario], "", c.ExtractModel)
	}
	for _, w := range sortedKeys(c.ModelOverrides) {
		for _, role := range sortedKeys(c.ModelOverrides[w]) {
			origin := c.Origins[table.Join(table.Join("modelOverrides", w), role)]
			if origin == "" {
				origin = c.Origins[table.Join("modelOverrides", w)]
			}
			known(origin, "", c.ModelOverrides[w][role])
		}
	}
}

// gatherSecrets lists what the redactor must know by value.
func (l *loader) gatherSecrets(c *Config) {
	env := lists.Map(sortedKeys(l.env), func(k string) string { return k + "=" + l.env[k].value })
	c.secrets = redact.FromEnv(env)
	add := func(name, value string) {
		if value != "" {
			c.secrets = append(c.secrets, redact.Secret{Name: name, Value: value})
		}
	}
	for _, name := range c.Redact.Env {
		add(name, l.valueInEnv(name))
	}
	for _, name := range sortedKeys(c.Providers) {
		add(cmp.Or(c.Providers[name].APIKeyEnv, name+"-key"), c.Providers[name].APIKey.Reveal())
	}
	for _, name := range sortedKeys(c.variables) {
		add(name, c.variables[name])
	}
	for _, name := range sortedKeys(c.withheld) {
		add(c.Providers[name].APIKeyEnv, l.valueInEnv(c.Providers[name].APIKeyEnv))
	}
	for _, name := range sortedKeys(c.Agents) {
		for _, k := range sortedKeys(c.Agents[name].Env) {
			if redact.SecretName(k) {
				add(k, c.Agents[name].Env[k])
			}
		}
	}
}
