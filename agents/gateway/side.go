package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Side is something that agents ask a gateway for besides a model. It is called from several
// goroutines.
type Side interface {
	// AnswerSide answers one request. What it has to go outside for, it asks through keep.
	AnswerSide(ctx context.Context, body []byte, keep Keep) SideReply
}

// Keep gets the answer to a question of an agent. It calls ask and records what comes of it,
// where a recording is made, and plays what was recorded in a replay, without calling ask.
// The question is what the recording is found by. Its error is ask's, or says that there is
// no such recording (cassette.ErrNotRecorded), or that none can be made.
type Keep func(ctx context.Context, question []byte, ask func(context.Context) ([]byte, error)) ([]byte, error)

// SideReply is the answer of a Side.
type SideReply struct {
	Status int    // of HTTP
	Body   []byte // JSON; empty: none
	About  string // what was asked for, in a few words for the log
	Err    error  // why it failed, for the log
}

const (
	maxSide  = 1 << 20 // bytes of a request's body
	maxSides = 8       // requests that are answered at once
)

// serveSide answers a request to a Side.
func (g *Gateway) serveSide(w http.ResponseWriter, r *http.Request) {
	path, started := r.URL.Path, g.o.Now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		g.refuseRequest(w, dialect.Chat, http.StatusMethodNotAllowed, codePath, path+" takes POST only")
		return
	}
	if err := g.sides.Acquire(r.Context(), 1); err != nil {
		g.answerClosing(w, dialect.Chat) // or the client is gone
		return
	}
	defer g.sides.Release(1)
	r.Body = http.MaxBytesReader(w, r.Body, maxSide)
	body, err := g.readBody(w, r)
	if err != nil {
		g.refuseBody(w, dialect.Chat, err)
		return
	}
	reply := g.o.Sides[path].AnswerSide(r.Context(), body, g.keepSide(path))
	if g.o.OnCall != nil {
		g.o.OnCall(Call{Path: path, Side: reply.About, Status: reply.Status, Duration: max(g.o.Now().Sub(started), time.Duration(0)), Err: reply.Err})
	}
	writeAnswer(w, reply.Status, dialect.ContentType(false), reply.Body)
}

// keepSide is the Keep of what is served at a path.
func (g *Gateway) keepSide(path string) Keep {
	return func(ctx context.Context, question []byte, ask func(context.Context) ([]byte, error)) ([]byte, error) {
		if g.o.Replay != nil {
			return g.o.Replay.PlayAside(path, question)
		}
		answer, err := ask(ctx)
		if err != nil || g.o.Record == nil {
			return answer, err
		}
		if err := g.o.Record.KeepAside(path, question, answer); err != nil {
			g.keepError(codeRecord, err)
			return nil, err
		}
		return answer, nil
	}
}
