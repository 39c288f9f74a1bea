// Package gateway gives an agent a model on loopback. It runs in the parent
// process, takes requests in the dialects of OpenAI, Anthropic and Google with a one-time
// key, translates them into chat completions where a provider speaks nothing else, adds its key, allows only the configured models, counts tokens
// and cost, keeps budgets, retries, and records conversations into a cassette or
// plays them from one. The agent never sees a provider's key, and what passes
// through is never logged.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/gateway/translate"
	"github.com/united-workforce/uwf/internal/outage"
)

// API is the way in which a provider is spoken to and given its key.
type API string

// The APIs.
const (
	OpenAI    API = "openai"    // chat completions and responses; "Authorization: Bearer"
	Anthropic API = "anthropic" // messages with "x-api-key", and chat completions beside them
	Gemini    API = "gemini"    // generateContent with "x-goog-api-key", and chat completions beside it
)

// Provider is where a model is reached.
type Provider struct {
	Name string // for messages
	API  API    // empty: OpenAI
	// BaseURL as that API's clients take it: with the version for OpenAI
	// (https://api.openai.com/v1), without it for Anthropic
	// (https://api.anthropic.com) and Gemini (https://generativelanguage.googleapis.com).
	BaseURL string
	// Wires are the dialects that it speaks; none: those of its API. A client of another is
	// answered by translation, where chat is among them.
	Wires   []dialect.Dialect
	Key     string // may be empty for a provider that needs none
	KeyName string // for messages: the variable that holds it; may be empty
}

// Price is what a model costs in US dollars for a million tokens; 0 is a price.
// CachedInput is that of input read from a prompt cache, CacheWrite that of input written to
// one for minutes; for an hour it is 1.6 times as much: with Anthropic, five quarters of what
// other input costs and twice that.
type Price struct{ Input, CachedInput, CacheWrite, Output float64 }

// hourWrite is how much more it costs to keep input in a cache for an hour.
const hourWrite = 1.6

// Model is one that agents may use.
type Model struct {
	Alias     string // what agents may call it besides Name; may be empty
	Name      string // what the provider calls it
	Provider  Provider
	Window    int    // tokens of a request and its answer; 0: unknown. For estimates only.
	MaxOutput int    // tokens; 0: unknown. For estimates only.
	Price     *Price // nil: unknown
	// ReportsCost: the provider says with each answer what it cost.
	ReportsCost bool
	// SetPrice says how the price is set, for messages: a command.
	SetPrice string
}

// Budget is what may be spent; 0: without limit.
type Budget struct {
	Tokens  int64 // input and output together
	CostUSD float64
}

// Meter is told what each answer cost, once for each request that reached a
// model: input and output tokens, and US dollars, if anybody knows them. It is called
// from several goroutines.
type Meter interface {
	Add(in, out int64, costUSD float64)
	AddUnpriced(in, out int64)
}

// Call is what happened to one request: for showing progress. It holds no key
// and nothing of what was said.
type Call struct {
	Path     string
	Model    string
	Status   int // as given to the client
	Tries    int // requests to the provider; 0 in a replay
	Stream   bool
	In, Out  int64
	CostUSD  float64
	Unpriced bool // nobody knows what some of it cost
	// AtMost are those of Out that were counted for answers that did not come to their end, for
	// which nobody says how many there were.
	AtMost   int64
	Duration time.Duration
	Answer   dialect.Answer // what the model said, as far as it came
	Side     string         // what was asked for besides a model, in a few words; Model is empty then
	HungUp   bool           // the client did not wait for the end
	Err      error          // why it failed; nil where Status is 200
	// Dropped are fields and tools of the request that the provider did not get. Each
	// is named in one Call of a gateway.
	Dropped []string
}

// Options of a gateway. All but Models (or Replay) may be left out.
type Options struct {
	Models []Model
	Budget Budget
	Meter  Meter
	OnCall func(Call) // called from several goroutines

	Record *cassette.Recorder // written when the gateway is closed
	Replay *cassette.Player   // answers everything; no connection is ever made

	Sides map[string]Side // what is served besides models, by path

	Proxy     func(*http.Request) (*url.URL, error) // nil: no proxy, whatever the environment says
	Transport http.RoundTripper                     // for tests; Proxy is ignored then

	MaxRequest int64 // bytes of a request's body; 0: 8 MiB
	MaxAnswer  int64 // bytes of an answer; 0: 64 MiB

	Outages outage.Policy    // how long a provider that fails is tried again, from its first failure on
	Now     func() time.Time // nil: time.Now
}

const (
	// answerTime is for a plain answer, for the first event of a stream, and for its rest
	// once the client is gone.
	answerTime = 10 * time.Minute
	eventTime  = 5 * time.Minute  // between two events of a stream
	bodyTime   = time.Minute      // for a request's body to arrive
	lingerTime = 10 * time.Second // for answers under way to be read to their end by Close
)

// Gateway is a server on loopback that runs until Close. Of a request it passes on the fields
// and headers that are allowed, with the provider's key and the model's own name in place of
// the client's; of an answer everything, with the provider's key blotted out.
type Gateway struct {
	o      Options
	url    string // its root, as in "http://127.0.0.1:41213"
	key    string // the one-time key that clients present, see isAuthorized
	ledger *ledger
	intake *intake
	sides  *semaphore.Weighted // requests to Sides under way
	models map[string]*Model

	translated atomic.Int64     // answers, for their ids
	items      *translate.Items // those that clients may refer to

	upstream  context.Context    // of requests to providers, whatever clients do
	cancel    context.CancelFunc // ends them, and so everything that runs
	stop      context.CancelFunc // lets nothing begin any more
	server    *http.Server
	transport http.RoundTripper

	mu      sync.Mutex
	closed  bool
	active  sync.WaitGroup // handlers
	serving chan struct{}  // closed when the server has stopped
	fatal   error          // the first error that stays, with its code
	code    string
	last    error           // of the provider; cleared by its next good answer
	told    map[string]bool // names of dropped fields
	refused map[*Model][]string
	endings []served // the newest last
}

// Start opens a gateway on a free port of 127.0.0.1. It ends with Close, and
// when ctx ends it answers nothing any more.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start gateway: listen on 127.0.0.1: %w", err)
	}
	return startOn(ctx, l, o), nil
}

func startOn(ctx context.Context, l net.Listener, o Options) *Gateway {
	o.MaxRequest, o.MaxAnswer = cmp.Or(o.MaxRequest, 8<<20), cmp.Or(o.MaxAnswer, 64<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = newTransport(o.Proxy)
	}
	g := &Gateway{
		o: o, url: "http://" + l.Addr().String(),
		key:       "uwf-" + rand.Text(),
		ledger:    newLedger(o.Budget),
		intake:    newIntake(o.MaxRequest),
		sides:     semaphore.NewWeighted(maxSides),
		models:    indexModels(o.Models),
		transport: o.Transport,
		serving:   make(chan struct{}),
		told:      map[string]bool{},
		refused:   map[*Model][]string{},
		items:     translate.NewItems(int(o.MaxRequest)),
	}
	g.upstream, g.cancel = context.WithCancel(ctx)
	clients, stop := context.WithCancel(g.upstream)
	g.stop = stop
	g.server = &http.Server{
		Handler:           http.HandlerFunc(g.serveRequest),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return clients },
		ErrorLog:          log.New(io.Discard, "", 0), // it would print what clients send
	}
	go func() {
		defer close(g.serving)
		if err := g.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.keepError(codeClosed, fmt.Errorf("gateway: serve %s: %w", g.url, err))
		}
	}()
	return g
}

// indexModels finds models by what clients may call them. An alias goes before a name;
// of several models with one name the first is meant.
func indexModels(models []Model) map[string]*Model {
	out := map[string]*Model{}
	for i := range models {
		if a := models[i].Alias; a != "" {
			out[a] = &models[i]
		}
	}
	for i := range models {
		if _, taken := out[models[i].Name]; !taken {
			out[models[i].Name] = &models[i]
		}
	}
	return out
}

// The variables that name the gateway itself, whatever the agent's own clients
// read: its root, without a version, and the one-time key.
const (
	EnvURL = "UWF_GATEWAY_URL"
	EnvKey = "UWF_GATEWAY_KEY"
)

// URL is the gateway's root, as in "http://127.0.0.1:41213".
func (g *Gateway) URL() string { return g.url }

// AccessEnv is the gateway's address and key, as "NAME=value": all that an agent gets which
// brings its own model, and may still need the gateway's for something else. It is a part
// of Env.
func (g *Gateway) AccessEnv() []string {
	return []string{EnvURL + "=" + g.url, EnvKey + "=" + g.key}
}

// Env is the environment that points clients at the gateway, as "NAME=value", by the names
// that OpenAI's and Anthropic's clients in general know. model is the one to use; empty: the
// client's choice. What one program alone reads is set by whoever starts it, out of
// UWF_GATEWAY_URL and UWF_GATEWAY_KEY.
func (g *Gateway) Env(model string) []string {
	env := append(g.AccessEnv(),
		"OPENAI_BASE_URL="+g.url+"/v1",
		"OPENAI_API_BASE="+g.url+"/v1",
		"OPENAI_API_KEY="+g.key,
		"ANTHROPIC_BASE_URL="+g.url,
		"ANTHROPIC_API_KEY="+g.key,
	)
	if model != "" {
		env = append(env, "OPENAI_MODEL="+model, "ANTHROPIC_MODEL="+model)
	}
	return env
}

// Err says what an agent's failure may come from: a *BudgetError, a
// *cassette.MismatchError or a failed recording, which stay; else an
// *UpstreamError where the provider's last answer was a failure; else nil.
func (g *Gateway) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fatal != nil {
		return g.fatal
	}
	return g.last
}

// Unused lists the entries of the replayed step that nobody asked for.
func (g *Gateway) Unused() []string {
	if g.o.Replay == nil {
		return nil
	}
	return g.o.Replay.Unused()
}

// Close stops the gateway and writes the recording. Answers under way are read to
// their end for a while, since they are paid for; what is cut then counts as much as
// was reserved for it. It returns when nothing of the gateway runs any more; its
// error is that of the recording.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.stop()
	idle := make(chan struct{})
	go func() { g.active.Wait(); close(idle) }()
	linger := time.NewTimer(lingerTime)
	select {
	case <-idle:
		g.flushAnswers()
	case <-linger.C:
	case <-g.upstream.Done():
	}
	linger.Stop()
	g.cancel()
	g.server.Close()
	<-g.serving
	<-idle
	if t, ok := g.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	if g.o.Record != nil {
		if err := g.o.Record.Close(); err != nil {
			g.keepError(codeRecord, err)
			return err
		}
	}
	return nil
}

// flushAnswers lets the answers of handlers that have ended reach who asked: a handler's end is
// not yet that of its answer. A client that does not read is not waited for.
func (g *Gateway) flushAnswers() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = g.server.Shutdown(ctx) // what is left is closed next
}

// beginHandler counts a handler in, unless the gateway is at its end.
func (g *Gateway) beginHandler() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.upstream.Err() != nil {
		return false
	}
	g.active.Add(1)
	return true
}

// keepError keeps the first error that stays: all later requests get it.
func (g *Gateway) keepError(code string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fatal == nil {
		g.fatal, g.code = err, code
	}
}

// noteNewNames gives the names that were not told before, and notes them as told.
func (g *Gateway) noteNewNames(names []string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, name := range names {
		if !g.told[name] && len(g.told) < maxTold {
			g.told[name] = true
			out = append(out, name)
		}
	}
	return out
}

// maxTold is how many names of dropped fields a gateway tells.
const maxTold = 100

// noteProvider notes how the provider's last answer went; nil: well.
func (g *Gateway) noteProvider(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = err
}
