package gateway

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// EndingPath is where an agent asks, with an answer as the body of a POST, how the model ended it:
// programs that talk to a model seldom tell. The answer is an [Ending] in JSON.
const EndingPath = "/uwf/ending"

// Ending is how a model ended an answer.
type Ending struct {
	// Finish is as in [dialect.Answer]; empty: no model of this gateway has given such an answer.
	Finish string `json:"finish"`
	Limit  int64  `json:"limit"` // of the answer in tokens; 0: the client set none
	// Known: it is that of an answer that the text ends with, otherwise of the newest answer.
	Known bool `json:"known"`
}

// Incomplete says why the answer is not whole; empty: it is.
func (e Ending) Incomplete() string {
	switch e.Finish {
	case dialect.FinishLength:
		return "cut off at the output limit"
	case dialect.FinishFilter:
		return "stopped by the provider's filter, or refused"
	}
	return ""
}

// served is the end of an answer that a client got.
type served struct {
	tail string
	Ending
}

const (
	// keptEndings is how many answers are known: titles and the like may come after the last one.
	keptEndings = 16
	// tailBytes is how much of an answer tells it from others.
	tailBytes = 400
)

// noteEnding remembers how an answer ended. With one that calls a tool no work ends.
func (g *Gateway) noteEnding(a dialect.Answer, limit int) {
	tail := strings.TrimSpace(a.Text)
	tail = tail[max(0, len(tail)-tailBytes):]
	if len(a.Calls) > 0 {
		a.Finish, tail = dialect.FinishCalls, ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endings = append(g.endings[max(0, len(g.endings)-keptEndings+1):], served{tail, Ending{Finish: a.Finish, Limit: int64(limit)}})
}

// findEnding says how the newest answer ended that the text ends with, or the newest of all.
func (g *Gateway) findEnding(text string) (e Ending) {
	text = strings.TrimSpace(text)
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(g.endings) - 1; i >= 0; i-- {
		if s := g.endings[i]; s.tail != "" && strings.HasSuffix(text, s.tail) {
			s.Known = true
			return s.Ending
		}
	}
	if len(g.endings) > 0 {
		e = g.endings[len(g.endings)-1].Ending
	}
	return e
}

// serveEnding answers a question for an ending.
func (g *Gateway) serveEnding(w http.ResponseWriter, r *http.Request) {
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuseBody(w, dialect.Chat, err)
		return
	}
	w.Header().Set("Content-Type", dialect.ContentType(false))
	_ = json.NewEncoder(w).Encode(g.findEnding(string(body))) // who has gone wants no answer
}
