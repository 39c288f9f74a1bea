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
	g, d := x.g, x.request.Dialect
	if !x.reserveTry(client) {
		return
	}
	a, turn, err := g.o.Replay.Play(x.request)
	if err != nil {
		g.ledger.settleSpent(spending{}, spending{}, nil)
		g.keepError(err)
		x.status, x.err = http.StatusBadRequest, err
		g.refuseRequest(x.w, d, http.StatusBadRequest, codeReplay, err.Error())
		x.reportCall(client)
		return
	}
	if a.Status == http.StatusOK {
		x.spent = completeUsage(a.Usage.Dialect(), x.size, countWritten(a))
	}
	m := g.models[x.request.Model]
	if m == nil {
		m = &Model{}
	}
	var priced bool
	x.spent.CostUSD, priced = m.costOf(x.spent)
	u := x.spent
	x.unpriced = !priced && u.In+u.Out > 0
	g.ledger.settleSpent(spending{}, spending{tokens: u.In + u.Out, cost: u.CostUSD}, nil) // nothing is paid here
	if a.Status == http.StatusOK {
		g.meterUsage(u.In, u.Out, u.CostUSD, !x.unpriced)
	}
	x.status = a.Status
	x.playAnswer(a, turn)
	x.reportCall(client)
}

// playAnswer gives a cassette's answer in the client's dialect.
func (x *exchange) playAnswer(a cassette.Answer, turn int) {
	d := x.request.Dialect
	reply := dialect.Reply{
		Answer: dialect.Answer{Text: a.Text, Calls: a.Calls, Finish: a.Finish, Usage: x.spent},
		ID:     fmt.Sprintf("replay-%d", turn), Model: x.request.Model,
	}
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
