package gateway

import (
	"context"
	"fmt"
	"net/http"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// replayAnswer answers from the cassette. It counts and keeps budgets like a real
// answer, with the usage that the cassette gives.
func (x *exchange) replayAnswer(client context.Context) {
	if x.model = x.g.models[x.request.Model]; x.model == nil {
		x.model = &Model{}
	}
	if !x.reserveTry(client) {
		return
	}
	defer x.reportCall(client)
	x.try.ended = true
	a, turn, err := x.g.o.Replay.Play(x.request)
	if err != nil {
		x.settleTry()
		x.g.keepError(codeReplay, err)
		x.refuseAsked(codeReplay, err)
		return
	}
	x.try.came = a.Status == http.StatusOK
	x.try.answer = dialect.Answer{Text: a.Text, Calls: a.Calls, Finish: a.Finish, Usage: a.Usage.Dialect(), Bytes: countWritten(a)}
	x.settleTry()
	x.status = a.Status
	x.playAnswer(a, turn)
}

// playAnswer gives a cassette's answer in the client's dialect.
func (x *exchange) playAnswer(a cassette.Answer, turn int) {
	d := x.request.Dialect
	reply := dialect.Reply{Answer: x.try.answer, ID: fmt.Sprintf("replay-%d", turn), Model: x.request.Model}
	reply.Usage = x.chargeOf()
	switch {
	case a.Error != "":
		x.g.refuseRequest(x.w, d, a.Status, codeProvider, a.Error)
	case a.Body != "":
		if a.Status != http.StatusOK {
			x.w.Header().Set("X-Should-Retry", "false")
		}
		writeAnswer(x.w, a.Status, dialect.ContentType(false), []byte(a.Body))
	case a.Events != "":
		writeAnswer(x.w, a.Status, dialect.ContentType(true), []byte(a.Events))
	case x.request.Stream:
		writeAnswer(x.w, a.Status, dialect.ContentType(true), reply.Stream(d, x.request.WantUsage))
	default:
		writeAnswer(x.w, a.Status, dialect.ContentType(false), reply.Body(d))
	}
}

// countWritten is how much a model wrote, for an estimate of its tokens.
func countWritten(a cassette.Answer) int {
	n := len(a.Text) + len(a.Body) + len(a.Events)
	for _, c := range a.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}
