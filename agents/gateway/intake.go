package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// intake bounds the memory that requests take, however many come at once: those
// beyond it wait for the others.
type intake struct {
	most    int64               // bytes of one body
	held    *semaphore.Weighted // bytes of the bodies of all requests under way
	reading *semaphore.Weighted // bodies that are read and taken apart, which takes many times their size
}

const (
	// heldBodies is how many bodies of the largest size are under way at once, and
	// readBodies how many are taken apart.
	heldBodies = 4
	readBodies = 2
	// leastHeld is what a request counts for, however small, in bytes.
	leastHeld = 64 << 10
)

func newIntake(most int64) *intake {
	return &intake{most: most, held: semaphore.NewWeighted(heldBodies * most), reading: semaphore.NewWeighted(readBodies)}
}

// weighBody is what a body of that length counts for; one of unknown length, -1, as
// much as any may have.
func (in *intake) weighBody(length int64) int64 {
	if length < 0 {
		return in.most
	}
	return min(max(length, leastHeld), in.most)
}

// intaken is a request that was read.
type intaken struct {
	*dialect.Request
	size    int    // bytes of its body
	release func() // to be called when it is over
}

// readRequest takes a request's body, within its limit, and what it asks. Where it
// can't, it has answered and ok is false.
func (g *Gateway) readRequest(w http.ResponseWriter, r *http.Request, d dialect.Dialect) (_ intaken, ok bool) {
	if g.refuseUnread(w, r, d) {
		return intaken{}, false
	}
	weight := g.intake.weighBody(r.ContentLength)
	if err := g.intake.held.Acquire(r.Context(), weight); err != nil {
		g.answerClosing(w, d) // or the client is gone
		return intaken{}, false
	}
	in := intaken{release: func() { g.intake.held.Release(weight) }}
	if err := g.intake.reading.Acquire(r.Context(), 1); err != nil {
		in.release()
		g.answerClosing(w, d)
		return intaken{}, false
	}
	defer g.intake.reading.Release(1)
	body, err := g.readBody(w, r)
	if err == nil {
		in.size = len(body)
		in.Request, err = parseRequest(d, r.URL.Path, body)
	}
	if err != nil {
		in.release()
		g.refuseBody(w, d, err)
		return intaken{}, false
	}
	if g.o.Record != nil || g.o.Replay != nil {
		in.ReadMessages()
	}
	if surplus := weight - g.intake.weighBody(int64(len(body))); surplus > 0 { // of one whose length was not told
		g.intake.held.Release(surplus)
		weight -= surplus
	}
	return in, true
}

func parseRequest(d dialect.Dialect, path string, body []byte) (*dialect.Request, error) {
	if gemini, ok := dialect.ParseGeminiPath(path); ok {
		return dialect.ParseGemini(gemini, body)
	}
	return dialect.ParseRequest(d, body)
}

// refuseUnread refuses, without reading its body, a request that gets no further
// whatever is in it. It reports whether it did.
func (g *Gateway) refuseUnread(w http.ResponseWriter, r *http.Request, d dialect.Dialect) bool {
	enc := r.Header.Get("Content-Encoding")
	switch err := g.ledger.checkOpen(); {
	case g.refuseStopped(w, d):
	case err != nil:
		g.keepError(codeBudget, err)
		g.refuseRequest(w, d, http.StatusBadRequest, codeBudget, err.Error())
	case g.o.Replay == nil && !g.servesDialect(d):
		g.refuseRequest(w, d, http.StatusNotFound, codeModel, fmt.Sprintf("no configured model is reached by %s; configured are: %s", d.Path(), g.modelList()))
	case enc != "" && enc != "identity":
		g.refuseRequest(w, d, http.StatusUnsupportedMediaType, codeRequest, "compressed requests are not supported: send the body as it is")
	case r.ContentLength > g.intake.most:
		g.refuseTooLarge(w, d, fmt.Sprintf("the request has %d bytes, more than the %d that are taken", r.ContentLength, g.intake.most))
	default:
		return false
	}
	return true
}

// readBody reads a body that comes in time.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, g.intake.most)); err != nil {
		return nil, err // the server reads the rest, for as long as there was for it
	}
	return body.Bytes(), conn.SetReadDeadline(time.Time{})
}

// refuseBody says what is wrong with a body.
func (g *Gateway) refuseBody(w http.ResponseWriter, d dialect.Dialect, err error) {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		g.refuseTooLarge(w, d, fmt.Sprintf("the request has more than the %d bytes that are taken", long.Limit))
	case errors.Is(err, dialect.ErrTooLarge):
		g.refuseRequest(w, d, http.StatusRequestEntityTooLarge, codeTooLarge, err.Error()+": shorten the conversation, or begin a new one")
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.refuseRequest(w, d, http.StatusRequestTimeout, codeRequest, fmt.Sprintf("the request's body did not come within %s", bodyTime))
	default:
		g.refuseRequest(w, d, http.StatusBadRequest, codeRequest, err.Error())
	}
}

func (g *Gateway) refuseTooLarge(w http.ResponseWriter, d dialect.Dialect, why string) {
	g.refuseRequest(w, d, http.StatusRequestEntityTooLarge, codeTooLarge,
		why+": shorten the conversation (what tools put out is the most of it), or raise the limit: uwf config set gateway.maxBody BYTES")
}

// servesDialect says whether any model is reached by clients of a dialect.
func (g *Gateway) servesDialect(d dialect.Dialect) bool {
	for _, m := range g.models {
		if m.Provider.servesDialect(d) {
			return true
		}
	}
	return false
}
