package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/gateway/translate"
	"github.com/united-workforce/uwf/internal/lists"
)

// foreignAnswer is the answer of a provider that does not speak the client's dialect. Nil:
// it does, and everything passes as it came.
type foreignAnswer struct {
	*translate.Translation
	stream *translate.Stream
}

// chooseWire finds how the provider is asked. Where that can't be, it has told the client and
// ok is false.
func (x *exchange) chooseWire() (ok bool) {
	x.sent = x.request
	if x.model.Provider.speaksDialect(x.request.Dialect) {
		return true
	}
	t, err := translate.NewTranslation(x.request, translate.Options{
		Model: x.request.Model, ID: fmt.Sprintf("uwf-%d", x.g.translated.Add(1)), MaxOutput: x.model.MaxOutput, Items: x.g.items, Refused: x.g.refusedBy(x.model),
	})
	if err != nil {
		x.g.refuseRequest(x.w, x.request.Dialect, http.StatusBadRequest, codeRequest, err.Error())
		return false
	}
	x.size += t.Added
	x.sent, x.foreign = t.Request, &foreignAnswer{Translation: t}
	lost := lists.Map(t.Lost, func(what string) string { return what + " (by translation into chat)" })
	x.request.Dropped = append(x.request.Dropped, lost...)
	return true
}

// adaptRequest changes a translated request that the provider refuses, if it says what it refuses.
// Later requests to that model leave the same fields out.
func (x *exchange) adaptRequest(refusal []byte) bool {
	if x.foreign == nil || refusal == nil {
		return false
	}
	without, ok := x.foreign.Adapt(refusal)
	refused := lists.Map(without, func(field string) string { return field + " (the provider refuses it)" })
	x.request.Dropped = append(x.request.Dropped, refused...)
	x.g.refusedBy(x.model, without...)
	x.sent = x.foreign.Request
	return ok
}

// refusedBy are the fields that a model's provider was seen to refuse, with these.
func (g *Gateway) refusedBy(m *Model, more ...string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[m] = append(g.refused[m], more...)
	return g.refused[m]
}

// translateWhole is a plain answer as the client gets it.
func (x *exchange) translateWhole(body []byte) ([]byte, error) {
	if x.foreign == nil {
		return body, nil
	}
	return x.foreign.WriteAnswer(x.try.answer, x.chargeOf())
}

func (f *foreignAnswer) beginStream() {
	if f != nil {
		f.stream = f.NewStream()
	}
}

// translateEvent is what the client gets of an event; so is the answer so far.
func (f *foreignAnswer) translateEvent(event []byte, so dialect.Answer) []byte {
	if f == nil {
		return event
	}
	return f.stream.Add(so)
}

// endForeign gives the client the end of a stream that came whole. It is counted before.
func (x *exchange) endForeign(client context.Context) error {
	if x.foreign == nil {
		return nil
	}
	rest, err := x.foreign.stream.End(x.try.answer, x.chargeOf())
	if err != nil {
		return err
	}
	x.settleTry()
	x.passEvent(client, rest)
	return nil
}

// readGiven is the answer as a recording has it: with the client's names for its tools.
func (x *exchange) readGiven(came dialect.Answer, raw []byte) dialect.Answer {
	if x.foreign == nil {
		return came
	}
	var given dialect.Answer
	if x.request.Stream {
		c := dialect.NewCollector(x.request.Dialect)
		for events := dialect.NewEventReader(bytes.NewReader(raw), len(raw)+1); ; {
			ev, err := events.Next()
			if err != nil {
				break
			}
			c.Add(ev)
		}
		given = c.AnswerSoFar()
	} else if a, err := dialect.ParseAnswer(x.request.Dialect, raw); err == nil {
		given = a
	}
	given.Usage, given.Bytes = came.Usage, came.Bytes
	return given
}
