package gateway

import (
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// The codes of the gateway's own errors, in the "code" of the OpenAI form.
const (
	codeKey      = "invalid_api_key"
	codeModel    = "model_not_found"
	codeRequest  = "invalid_request"
	codePath     = "unknown_url"
	codeBudget   = "budget_exceeded"
	codeReplay   = "replay_mismatch"
	codeRecord   = "recording_failed"
	codeProvider = "provider_failed"
	codeClosed   = "gateway_closed"
	codeTooLarge = "request_too_large"
)

// IsOwnCode says whether the code of an error is the gateway's: no other request for
// the same thing gets further.
func IsOwnCode(code string) bool {
	return slices.Contains([]string{codeKey, codeModel, codePath, codeBudget, codeReplay, codeRecord, codeClosed, codeTooLarge}, code)
}

const countPath = "/messages/count_tokens"

// serveRequest answers one request of a client.
func (g *Gateway) serveRequest(w http.ResponseWriter, r *http.Request) {
	path := dialect.TrimVersion(r.URL.Path)
	d, known := dialect.ForPath(r.URL.Path)
	counts := path == countPath || d == dialect.Gemini && !known
	if !known {
		d = dialectOfClient(r, d)
	}
	if g.answerGreeting(w, r, d) {
		return
	}
	if !g.beginHandler() {
		g.answerClosing(w, d)
		return
	}
	defer g.active.Done()
	models, isModels := strings.CutPrefix(strings.TrimPrefix(path, "/v1beta"), "/models")
	switch {
	case !g.isAuthorized(r):
		g.refuseRequest(w, d, http.StatusUnauthorized, codeKey, "the gateway's key is missing or wrong: use the key from the environment of this process")
	case g.o.Sides[r.URL.Path] != nil:
		g.serveSide(w, r)
	case r.URL.Path == EndingPath && r.Method == http.MethodPost:
		g.serveEnding(w, r)
	case known && r.Method == http.MethodPost:
		g.passRequest(w, r, d)
	case counts && r.Method == http.MethodPost:
		g.countTokens(w, r, d)
	case known || counts:
		w.Header().Set("Allow", http.MethodPost)
		g.refuseRequest(w, d, http.StatusMethodNotAllowed, codePath, fmt.Sprintf("%s takes POST only", r.URL.Path))
	case isModels && (models == "" || models[0] == '/') && r.Method == http.MethodGet:
		g.listModels(w, d, strings.TrimPrefix(models, "/"))
	default:
		g.refuseRequest(w, d, http.StatusNotFound, codePath, fmt.Sprintf(
			"%s %s is not served here; known are %s, %s, %s, /v1%s, %s (or streamGenerateContent, countTokens), /v1/models and /v1beta/models",
			r.Method, r.URL.Path, dialect.Chat.Path(), dialect.Responses.Path(), dialect.Messages.Path(), countPath, dialect.Gemini.Path()))
	}
}

// dialectOfClient is the dialect in which a client reads errors and lists of models, where
// the path alone does not say.
func dialectOfClient(r *http.Request, d dialect.Dialect) dialect.Dialect {
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1beta/") || r.Header.Get("X-Goog-Api-Key") != "":
		return dialect.Gemini
	case dialect.TrimVersion(r.URL.Path) == countPath || r.Header.Get("Anthropic-Version") != "":
		return dialect.Messages
	}
	return d
}

// answerGreeting answers, without a key, what clients ask before they begin: claude whether
// anybody is there, codex for a WebSocket. Codex goes on without one at status 426 only;
// after others it tries seven times. It reports whether it has answered.
func (g *Gateway) answerGreeting(w http.ResponseWriter, r *http.Request, d dialect.Dialect) bool {
	switch asks := r.Method == http.MethodHead || r.Method == http.MethodGet; {
	case r.Header.Get("Upgrade") != "":
		w.Header().Set("Connection", "close") // whatever body there is stays unread
		g.refuseRequest(w, d, http.StatusUpgradeRequired, codePath, "the gateway speaks plain HTTP: ask by POST, without a WebSocket")
	case asks && r.URL.Path == "/api/hello", r.Method == http.MethodHead && r.URL.Path == "/":
		w.WriteHeader(http.StatusNoContent)
	default:
		return false
	}
	return true
}

// isAuthorized compares the key in constant time, wherever the client puts it. Google's
// clients have it in a header of their own or in the query, which goes no further.
func (g *Gateway) isAuthorized(r *http.Request) bool {
	bearer := r.Header.Get("Authorization")
	if len(bearer) > 7 && strings.EqualFold(bearer[:7], "bearer ") {
		bearer = strings.TrimSpace(bearer[7:])
	}
	ok := 0
	for _, key := range []string{bearer, r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key")} {
		ok |= subtle.ConstantTimeCompare([]byte(key), []byte(g.key))
	}
	return ok == 1
}

// answerClosing answers requests that come or wait while the gateway ends: silence
// would be an empty answer of status 200.
func (g *Gateway) answerClosing(w http.ResponseWriter, d dialect.Dialect) {
	g.refuseRequest(w, d, http.StatusServiceUnavailable, codeClosed, "the gateway is closing: the step has ended or was stopped")
}

// refuseRequest answers with an error of the gateway's own, in the form that the client
// knows. Nothing that it refuses gets better by asking again.
func (g *Gateway) refuseRequest(w http.ResponseWriter, d dialect.Dialect, status int, code, message string) {
	w.Header().Set("X-Should-Retry", "false")
	writeAnswer(w, status, dialect.ContentType(false), dialect.ErrorBody(d, status, code, message))
}

// writeAnswer sends a whole answer. A client that is gone is no error of anyone's.
func writeAnswer(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	//nolint:errcheck // see above
	w.Write(body)
}

func (g *Gateway) listModels(w http.ResponseWriter, d dialect.Dialect, id string) {
	if id != "" {
		m, ok := g.models[id]
		if !ok {
			g.refuseRequest(w, d, http.StatusNotFound, codeModel, g.unknownModel(id))
			return
		}
		writeAnswer(w, http.StatusOK, dialect.ContentType(false), dialect.ModelBody(d, dialect.ModelInfo{ID: id, Owner: m.Provider.Name}))
		return
	}
	var list []dialect.ModelInfo
	for _, name := range g.modelNames() {
		list = append(list, dialect.ModelInfo{ID: name, Owner: g.models[name].Provider.Name})
	}
	writeAnswer(w, http.StatusOK, dialect.ContentType(false), dialect.ModelList(d, list))
}

func (g *Gateway) modelNames() []string { return slices.Sorted(maps.Keys(g.models)) }

func (g *Gateway) modelList() string { return strings.Join(g.modelNames(), ", ") }

func (g *Gateway) unknownModel(name string) string {
	return fmt.Sprintf("the model %.200q is not configured; configured are: %s", name, g.modelList())
}

// findModel finds the model of a request, and refuses it where it is not configured
// or not reached in this dialect.
func (g *Gateway) findModel(w http.ResponseWriter, req *dialect.Request) (*Model, bool) {
	m, ok := g.models[req.Model]
	if !ok {
		g.refuseRequest(w, req.Dialect, http.StatusNotFound, codeModel, g.unknownModel(req.Model))
		return nil, false
	}
	if !m.Provider.servesDialect(req.Dialect) {
		g.refuseRequest(w, req.Dialect, http.StatusBadRequest, codeModel, fmt.Sprintf("the model %q is reached by %s", req.Model, m.Provider.paths()))
		return nil, false
	}
	return m, true
}

// refuseStopped refuses a request after an error that stays.
func (g *Gateway) refuseStopped(w http.ResponseWriter, d dialect.Dialect) bool {
	g.mu.Lock()
	code, err := g.code, g.fatal
	g.mu.Unlock()
	if err != nil {
		g.refuseRequest(w, d, http.StatusBadRequest, code, err.Error())
	}
	return err != nil
}

// passRequest passes one request to its model, or to the replay.
func (g *Gateway) passRequest(w http.ResponseWriter, r *http.Request, d dialect.Dialect) {
	if gemini, _ := dialect.ParseGeminiPath(r.URL.Path); gemini.Stream && r.URL.Query().Get("alt") != "sse" {
		g.refuseRequest(w, d, http.StatusBadRequest, codeRequest, "streamGenerateContent is served as server-sent events alone: ask with ?alt=sse")
		return
	}
	in, ok := g.readRequest(w, r, d)
	if !ok {
		return
	}
	defer in.release()
	x := &exchange{g: g, w: w, request: in.Request, size: in.size, header: r.Header, path: d.Path(), started: g.o.Now()}
	if g.o.Replay != nil {
		x.replayAnswer(r.Context())
		return
	}
	if x.model, ok = g.findModel(w, in.Request); !ok || g.refuseUnpriced(w, x) {
		return
	}
	if !x.chooseWire() {
		return
	}
	x.askUsage = in.Stream && x.sent.Dialect == dialect.Chat
	x.expected = expectUsage(x.sent, x.size, x.model)
	cost, known := x.model.costOf(x.expected)
	if !known {
		cost = g.o.Budget.CostUSD // one at a time, until the provider has told
	}
	x.reserved = spending{tokens: x.expected.In + x.expected.Out, cost: cost}
	x.askUntilAnswered(r.Context())
	x.reportCall(r.Context())
}

// refuseUnpriced refuses a model whose answers can't be held against a budget of
// cost. It reports whether it did.
func (g *Gateway) refuseUnpriced(w http.ResponseWriter, x *exchange) bool {
	m := x.model
	if g.o.Budget.CostUSD <= 0 || m.Price != nil || m.ReportsCost {
		return false
	}
	err := &BudgetError{Budget: g.o.Budget, Unknown: true, Model: m.Name, SetPrice: m.SetPrice}
	g.refuseRequest(w, x.request.Dialect, http.StatusBadRequest, codeBudget, err.Error())
	return true
}

// countTokens passes a question for a number of tokens on. It costs nothing and
// is no part of a recording; a replay answers it with an estimate.
func (g *Gateway) countTokens(w http.ResponseWriter, r *http.Request, d dialect.Dialect) {
	in, ok := g.readRequest(w, r, d)
	if !ok {
		return
	}
	defer in.release()
	if g.o.Replay != nil {
		writeAnswer(w, http.StatusOK, dialect.ContentType(false), dialect.TokenCount(d, dialect.Estimate(in.size)))
		return
	}
	m, ok := g.findModel(w, in.Request)
	if !ok {
		return
	}
	if !m.Provider.speaksDialect(d) { // chat has no such question
		writeAnswer(w, http.StatusOK, dialect.ContentType(false), dialect.TokenCount(d, dialect.Estimate(in.size)))
		return
	}
	x := &exchange{g: g, w: w, request: in.Request, sent: in.Request, size: in.size, header: r.Header,
		path: "/v1" + countPath, started: g.o.Now(), model: m, free: true}
	x.askUntilAnswered(r.Context())
}
