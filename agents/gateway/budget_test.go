package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

func TestBudgetsRefuseTheNextRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget Budget
		api    API
		says   string
	}{
		{"tokens", Budget{Tokens: 200}, OpenAI, "the token budget is spent: 240 of 200 tokens"},
		{"cost", Budget{CostUSD: 0.0005}, OpenAI, "the cost budget is spent: $0.0006 of $0.0005"},
		{"tokens, Anthropic", Budget{Tokens: 240}, Anthropic, "the token budget is spent: 240 of 240 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, body := "/v1/chat/completions", chatBody
			if c.api == Anthropic {
				path, body = "/v1/messages", messageBody
			}
			u := newUpstream(t, answer(200, body))
			g := start(t, Options{Models: []Model{u.model(c.api)}, Budget: c.budget})
			for i := range 2 {
				if r := post(t, g, path, chatRequest); r.status != 200 || g.Err() != nil {
					t.Fatalf("request %d: %+v, %v", i+1, r, g.Err())
				}
			}
			for range 2 {
				r := post(t, g, path, chatRequest)
				var message string
				if c.api == Anthropic {
					_, message = anthropicError(t, r)
				} else {
					var code string
					if code, message = openAIError(t, r); code != "budget_exceeded" {
						t.Errorf("code %s", code)
					}
				}
				if r.status != 400 || message != c.says || r.header.Get("X-Should-Retry") != "false" {
					t.Errorf("%d %s", r.status, message)
				}
			}
			var b *BudgetError
			if !errors.As(g.Err(), &b) || b.Budget != c.budget || b.Tokens != 240 {
				t.Errorf("Err is %v", g.Err())
			}
			if n := len(u.all()); n != 2 {
				t.Errorf("%d requests reached the provider", n)
			}
		})
	}
}

func TestACostBudgetNeedsAKnownCost(t *testing.T) {
	withCost := strings.Replace(chatBody, `"total_tokens":120`, `"cost":0.0001`, 1)
	u := newUpstream(t, answer(200, withCost), answer(200, chatBody))
	model := u.model(OpenAI)
	model.Price, model.ReportsCost = nil, true
	g := start(t, Options{Models: []Model{model}, Budget: Budget{CostUSD: 1}})
	for range 2 { // the provider tells; then it does not
		if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	_, message := openAIError(t, post(t, g, "/v1/chat/completions", chatRequest))
	var b *BudgetError
	if !errors.As(g.Err(), &b) || !b.Unknown || !strings.Contains(message, "set its price") {
		t.Errorf("%s; Err is %v", message, g.Err())
	}
}

// A model whose cost nobody can know is not asked where cost is limited, whatever
// the agent was told to use; its other models still are.
func TestACostBudgetRefusesModelsWithoutAPrice(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	dear := Model{Alias: "dear", Name: "gpt-dear", SetPrice: "uwf config set models.dear.price.input DOLLARS", Provider: u.model(OpenAI).Provider}
	g := start(t, Options{Models: []Model{u.model(OpenAI), dear}, Budget: Budget{CostUSD: 1}})
	r := post(t, g, "/v1/chat/completions", strings.Replace(chatRequest, "main", "dear", 1))
	code, message := openAIError(t, r)
	if r.status != 400 || code != "budget_exceeded" || !strings.Contains(message, "what the model gpt-dear costs is unknown: uwf config set models.dear.price.input DOLLARS") {
		t.Errorf("%d %s: %s", r.status, code, message)
	}
	if n := len(u.all()); n != 0 || g.Err() != nil {
		t.Errorf("%d requests reached the provider; Err is %v", n, g.Err())
	}
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 {
		t.Errorf("%+v", r)
	}
}

// A price of 0 is a price: what costs nothing is within every budget.
func TestAPriceOfNothingIsAPrice(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	model := u.model(OpenAI)
	model.Price = &Price{}
	m := &meter{}
	g := start(t, Options{Models: []Model{model}, Budget: Budget{CostUSD: 0.0001}, Meter: m})
	for range 3 {
		if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 || g.Err() != nil {
			t.Errorf("%+v, %v", r, g.Err())
		}
	}
	if m.is(t, 3, 300, 60, 0); m.unpriced {
		t.Error("it is metered as if nobody knew the price")
	}
}

// Where nobody knows what tokens cost, the meter is told so.
func TestUnknownCostIsMeteredAsUnknown(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	model := u.model(OpenAI)
	model.Price = nil
	m := &meter{}
	g := start(t, Options{Models: []Model{model}, Meter: m})
	post(t, g, "/v1/chat/completions", chatRequest)
	if m.is(t, 1, 100, 20, 0); !m.unpriced {
		t.Error("it is metered as if it had cost nothing")
	}
}

// What is written to a cache costs more than other input, and twice as much where it
// is kept for an hour.
func TestCostOfCaches(t *testing.T) {
	m := &Model{Price: &Price{Input: 1, CachedInput: 0.1, CacheWrite: 1.25, Output: 10}}
	for _, c := range []struct {
		u    dialect.Usage
		want float64
	}{
		{dialect.Usage{In: 1000, Out: 100}, 2000},
		{dialect.Usage{In: 1000, CacheRead: 400}, 640},
		{dialect.Usage{In: 1000, CacheRead: 4000}, 100},
		{dialect.Usage{In: 1000, CacheRead: 4000, CacheWrite: 400}, 560},
		{dialect.Usage{In: 1000, CacheRead: 400, CacheWrite: 4000}, 5000},
		{dialect.Usage{In: 1000, CacheWrite: 400}, 1100},
		{dialect.Usage{In: 1000, CacheWrite: 400, CacheHour: 400}, 1400},
		{dialect.Usage{In: 1000, CacheWrite: 400, CacheHour: 100}, 1175},
		{dialect.Usage{In: 1000, CacheWrite: 400, CacheHour: 4000}, 1400},
	} {
		if got, known := m.costOf(c.u); !known || got < c.want/1e6-1e-12 || got > c.want/1e6+1e-12 {
			t.Errorf("%+v costs $%v, not $%v", c.u, got, c.want/1e6)
		}
	}
	m.Price.CacheWrite = 0 // a provider that takes nothing for it
	if got, _ := m.costOf(dialect.Usage{In: 1000, CacheRead: 400, CacheWrite: 500, CacheHour: 100}); got < 140e-6-1e-12 || got > 140e-6+1e-12 {
		t.Errorf("without a price of writing it costs $%v", got)
	}
}

// What is reserved is never less than what can be asked for.
func TestExpectedUsage(t *testing.T) {
	m := &Model{Window: 90_000, MaxOutput: 4000, Price: &Price{Input: 1, Output: 10}}
	in := dialect.Estimate(1000)
	for _, c := range []struct {
		r    dialect.Request
		want dialect.Usage
	}{
		{dialect.Request{Choices: 1}, dialect.Usage{In: in, Out: 4000}},
		{dialect.Request{Choices: 3, MaxOutput: 100}, dialect.Usage{In: in, Out: 300}},
		{dialect.Request{Choices: 1, MaxOutput: 64_000}, dialect.Usage{In: in, Out: 64_000}},
		{dialect.Request{Choices: dialect.MaxChoices, MaxOutput: 1<<31 - 1}, dialect.Usage{In: in, Out: dialect.MaxChoices * (1<<31 - 1)}},
		{dialect.Request{Choices: 1, Outside: true}, dialect.Usage{In: 90_000, Out: 4000}},
		{dialect.Request{Dialect: dialect.Messages, Choices: 1, MaxOutput: 7}, dialect.Usage{In: in, Out: 7, CacheWrite: in, CacheHour: in}},
	} {
		c.want.HasIn, c.want.HasOut = true, true
		if got := expectUsage(&c.r, 1000, m); got != c.want {
			t.Errorf("%+v: %+v, not %+v", c.r, got, c.want)
		}
	}
	if got := expectUsage(&dialect.Request{Choices: 1, Outside: true}, 1000, &Model{}); got.Out != defaultOutput || got.In != defaultWindow {
		t.Errorf("of an unknown model %+v", got)
	}
}

// Many requests at once: what is spent exceeds the budget by one at most, and
// all that fits is let through.
func TestParallelRequestsKeepTheBudget(t *testing.T) {
	const parallel, each = 40, 120 // tokens of an answer
	u := newUpstream(t, answer(200, chatBody))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Budget: Budget{Tokens: 5*each + 1}, Meter: m})
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	body := strings.Replace(chatRequest, "{", `{"max_tokens":200,`, 1)
	for range parallel {
		wg.Go(func() {
			r := post(t, g, "/v1/chat/completions", body)
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
	}
	wg.Wait()
	if statuses[200] != 6 || statuses[400] != parallel-6 {
		t.Errorf("answers %v", statuses)
	}
	m.is(t, 6, 600, 120, 6*chatCost)
}

// Requests that only others under way keep out wait for them; they are let in
// when those cost less than was feared.
func TestReservationsAreGivenBack(t *testing.T) {
	running := make(chan struct{}, 2)
	release := make(chan struct{})
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-release
		answer(200, chatBody)(w, r)
	})
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Budget: Budget{Tokens: 1000}})
	results := make(chan result, 2)
	for range 2 { // each may cost 8192 and more
		go func() { results <- post(t, g, "/v1/chat/completions", chatRequest) }()
	}
	<-running
	select {
	case <-running:
		t.Error("both run at once: nothing is reserved")
	case release <- struct{}{}:
	}
	<-running
	release <- struct{}{}
	for range 2 {
		if r := <-results; r.status != 200 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWaitingForABudgetEndsWithTheContext(t *testing.T) {
	l := newLedger(Budget{Tokens: 10})
	if err := l.reserveBudget(t.Context(), spending{tokens: 100}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.reserveBudget(ctx, spending{tokens: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	l.settleSpent(spending{tokens: 100}, spending{}, nil)
	if err := l.reserveBudget(t.Context(), spending{tokens: 1}); err != nil {
		t.Errorf("%v", err)
	}
}
