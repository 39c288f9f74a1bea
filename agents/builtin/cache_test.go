package builtin

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/task"
)

// The rules by which the fake provider keeps what requests begin with, as Anthropic and OpenAI
// write them down: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching and
// https://platform.openai.com/docs/guides/prompt-caching.
const (
	bytesOfToken = 4
	minKept      = 1024            // tokens; less is not kept
	keptFor      = 5 * time.Minute // since it was last read
	maxMarks     = 4               // cache_control in one request
	lookBack     = 20              // blocks before a mark in which something kept is found
	stepKept     = 128             // tokens; without marks only multiples are kept
)

// keeper is a provider's cache.
type keeper struct {
	now    time.Time
	marked map[[32]byte]time.Time // prefixes that end at a mark → when they were last used
	whole  map[string]time.Time   // requests, where there are no marks
}

// kept says how an input was counted, in tokens.
type kept struct{ plain, read, write int }

func (k kept) total() int { return k.plain + k.read + k.write }

func newKeeper() *keeper {
	return &keeper{now: time.Unix(1_750_000_000, 0), marked: map[[32]byte]time.Time{}, whole: map[string]time.Time{}}
}

// block is a part of a request that a mark may stand behind.
type block struct {
	text   string
	marked bool
}

// takeMarked counts a request of blocks, of which some are marked.
func (k *keeper) takeMarked(blocks []block) (out kept, err error) {
	ends, sums, hash, marks := make([]int, len(blocks)), make([][32]byte, len(blocks)), sha256.New(), 0
	n := 0
	for i, b := range blocks {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(b.text), b.text)
		n += len(b.text)
		ends[i], sums[i] = n/bytesOfToken, [32]byte(hash.Sum(nil))
	}
	read, written := 0, 0
	for i, b := range blocks {
		if !b.marked {
			continue
		}
		if marks++; marks > maxMarks {
			return out, fmt.Errorf("a maximum of %d blocks with cache_control may be provided", maxMarks)
		}
		for j := i; j >= 0 && j > i-lookBack; j-- {
			if used, ok := k.marked[sums[j]]; ok && k.now.Sub(used) < keptFor {
				read = max(read, ends[j])
				k.marked[sums[j]] = k.now
				break
			}
		}
		written = max(written, ends[i])
	}
	for i, b := range blocks {
		if b.marked && ends[i] >= minKept {
			k.marked[sums[i]] = k.now
		}
	}
	if written < minKept {
		written = 0
	}
	out.read, out.write = read, max(0, written-read)
	out.plain = n/bytesOfToken - out.read - out.write
	return out, nil
}

// takeWhole counts a request without marks.
func (k *keeper) takeWhole(text string) (out kept) {
	best := ""
	for old, used := range k.whole {
		n := 0
		for n < min(len(old), len(text)) && old[n] == text[n] {
			n++
		}
		if n = n / bytesOfToken / stepKept * stepKept; k.now.Sub(used) < keptFor && n >= minKept && n > out.read {
			out.read, best = n, old
		}
	}
	if best != "" {
		k.whole[best] = k.now
	}
	k.whole[text] = k.now
	out.plain = len(text)/bytesOfToken - out.read
	return out
}

// TestCacheRules: what the fake provider keeps, and what it doesn't.
func TestCacheRules(t *testing.T) {
	long := strings.Repeat("x", 4*2000)
	mark := func(texts ...string) (out []block) { // the last one is marked
		for i, s := range texts {
			out = append(out, block{s, i == len(texts)-1})
		}
		return out
	}
	many := func(n int) []string {
		out := []string{long}
		for range n {
			out = append(out, "abcd")
		}
		return out
	}
	for _, c := range []struct {
		name         string
		first, again []block
		after        time.Duration
		want         kept
	}{
		{"the same", mark(long), mark(long), 0, kept{read: 2000}},
		{"more", mark(long), mark(long, long), 0, kept{read: 2000, write: 2000}},
		{"something before it is other", mark("tools", long), mark("tooly", long), 0, kept{write: 2001}},
		{"too little", mark(long[:4000]), mark(long[:4000]), 0, kept{plain: 1000}},
		{"nothing marked", []block{{long, false}}, []block{{long, false}}, 0, kept{plain: 2000}},
		{"too late", mark(long), mark(long), keptFor, kept{write: 2000}},
		{"in time", mark(long), mark(long), keptFor - 1, kept{read: 2000}},
		{"too far back", mark(long), mark(many(20)...), 0, kept{write: 2020}},
		{"just near enough", mark(long), mark(many(19)...), 0, kept{read: 2000, write: 19}},
	} {
		k := newKeeper()
		if _, err := k.takeMarked(c.first); err != nil {
			t.Fatal(err)
		}
		k.now = k.now.Add(c.after)
		if got, err := k.takeMarked(c.again); err != nil || got != c.want {
			t.Errorf("%s: %+v, not %+v (%v)", c.name, got, c.want, err)
		}
	}
	if _, err := newKeeper().takeMarked([]block{{"a", true}, {"b", true}, {"c", true}, {"d", true}, {"e", true}}); err == nil {
		t.Error("five marks are taken")
	}
	k := newKeeper()
	for i, c := range []struct {
		text  string
		after time.Duration
		want  kept
	}{
		{long, 0, kept{plain: 2000}}, {long + "more", 0, kept{read: 1920, plain: 81}}, {"y" + long, 0, kept{plain: 2000}}, {long[:4000], 0, kept{plain: 1000}},
		{long, keptFor - 1, kept{read: 1920, plain: 80}}, {long, keptFor - 1, kept{read: 1920, plain: 80}}, {long, keptFor, kept{plain: 2000}},
	} {
		k.now = k.now.Add(c.after)
		if got := k.takeWhole(c.text); got != c.want {
			t.Errorf("%d: %+v, not %+v", i, got, c.want)
		}
	}
}

// blocksOf takes a messages request apart, in the order in which the provider reads it: tools,
// system, messages. The mark itself is no part of the text.
func blocksOf(req map[string]any) (out []block) {
	add := func(before string, v any) {
		b, _ := v.(map[string]any)
		_, marked := b["cache_control"]
		delete(b, "cache_control")
		text, _ := json.Marshal(b)
		out = append(out, block{before + string(text), marked})
	}
	for _, v := range asList(req["tools"]) {
		add("tool", v)
	}
	for _, v := range asList(req["system"]) {
		add("system", v)
	}
	for _, v := range asList(req["messages"]) {
		m, _ := v.(map[string]any)
		for _, b := range asList(m["content"]) {
			add(fmt.Sprint(m["role"]), b)
		}
	}
	return out
}

// cachingProvider answers every request with a tool call, 20 seconds after the one before.
type cachingProvider struct {
	*keeper
	turns []kept
}

func (p *cachingProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var req map[string]any
	_ = json.Unmarshal(b, &req)
	p.now = p.now.Add(20 * time.Second)
	id := fmt.Sprintf("call_%d", len(p.turns))
	var body map[string]any
	switch r.URL.Path {
	case "/v1/messages":
		k, err := p.takeMarked(blocksOf(req))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			body = map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": err.Error()}}
			break
		}
		p.turns = append(p.turns, k)
		body = map[string]any{"type": "message", "stop_reason": "tool_use", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "read_file", "input": map[string]any{"path": "a"}}},
			"usage": map[string]any{"input_tokens": k.plain, "cache_read_input_tokens": k.read, "cache_creation_input_tokens": k.write, "output_tokens": 20}}
	case "/v1/responses":
		text, _ := json.Marshal([]any{req["tools"], req["instructions"], req["input"]})
		k := p.takeWhole(string(text[:len(text)-2])) // what follows the last item's end is no part of it
		p.turns = append(p.turns, k)
		body = map[string]any{"status": "completed", "output": []any{map[string]any{"type": "reasoning", "id": "rs" + id, "encrypted_content": "sealed"}, map[string]any{"type": "function_call", "call_id": id, "name": "read_file", "arguments": `{"path":"a"}`}},
			"usage": map[string]any{"input_tokens": k.total(), "output_tokens": 20}}
	default:
		text, _ := json.Marshal([]any{req["tools"], req["messages"]})
		k := p.takeWhole(string(text[:len(text)-2]))
		p.turns = append(p.turns, k)
		body = map[string]any{"choices": []any{map[string]any{"finish_reason": "tool_calls", "message": map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read_file", "arguments": `{"path":"a"}`}}}}}},
			"usage": map[string]any{"prompt_tokens": k.total(), "completion_tokens": 20}}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// fill is text of so many tokens that no other part repeats.
func fill(name string, tokens int) string {
	s := fmt.Sprintf("%s %x ", name, sha256.Sum256([]byte(name)))
	return strings.Repeat(s, tokens*bytesOfToken/len(s)+1)[:tokens*bytesOfToken]
}

// runTurns has a model take 30 turns that grow from 8,000 tokens by 1,500 each. spoil changes the
// conversation's beginning before each turn; nil: nothing does.
func runTurns(t *testing.T, m task.Model, role string, p *cachingProvider, spoil func(turn int, h []openai.ChatCompletionMessage)) []kept {
	t.Helper()
	srv := httptest.NewServer(p)
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	set, err := tools.Open(tools.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	system, common := systemPrompt(set), fill("common", 4000)
	w := newWire(wireOptions{base: srv.URL + "/v1", transport: tr, model: m, tools: set.Definitions(), thread: "T", common: len(common)})
	offered, _ := json.Marshal(set.Definitions())
	rest := 8000 - 4000 - (len(system)+len(offered))/bytesOfToken
	h := []openai.ChatCompletionMessage{{Role: "system", Content: system}, {Role: "user", Content: common + fill(role, rest)}}
	before := len(p.turns)
	for turn := range MaxTurns {
		if spoil != nil {
			spoil(turn, h)
		}
		choice, _, err := w.askOnce(t.Context(), h, 1000, false)
		if err != nil {
			t.Fatal(err)
		}
		h = append(h, choice.Message, openai.ChatCompletionMessage{Role: "tool", ToolCallID: choice.Message.ToolCalls[0].ID, Content: fill(fmt.Sprint(role, turn), 1430)})
	}
	return p.turns[before:]
}

func sumKept(turns []kept) (sum kept) {
	for _, k := range turns {
		sum.plain, sum.read, sum.write = sum.plain+k.plain, sum.read+k.read, sum.write+k.write
	}
	return sum
}

// presetTask is the model of a preset as builtin is told of it.
func presetTask(p config.Preset) task.Model {
	m := task.Model{Name: p.Model.Name, API: string(p.Kind), Reasoning: p.Model.Reasoning, Wires: []string{"chat", "responses"}}
	if p.Kind == config.Anthropic {
		m.Wires = []string{"messages", "chat"}
	}
	return m
}

// TestInputIsCached: 30 turns that grow from 8,000 tokens by 1,500 read at least 90 % of their
// input from what the provider keeps, by every wire, and cost at most a fifth of what they cost
// without it; where something changes at the beginning, next to nothing is. docs/costs.md has the
// sums for the prices of the presets.
func TestInputIsCached(t *testing.T) {
	var table strings.Builder
	table.WriteString("| 30 turns of | input | read from the cache | written to it | without it | with it | ratio |\n|---|---|---|---|---|---|---|\n")
	for _, preset := range config.Presets() {
		price := preset.Model.Price
		if price.CachedInput == nil || *price.Input == 0 {
			continue
		}
		turns := runTurns(t, presetTask(preset), "role", &cachingProvider{keeper: newKeeper()}, nil)
		sum := sumKept(turns)
		if first, last := turns[0].total(), turns[len(turns)-1].total(); first < 7_500 || first > 8_500 || last-first < 29*1400 || last-first > 29*1600 {
			t.Fatalf("%s: turns of %d to %d tokens", preset.Name, first, last)
		}
		whole := float64(sum.total()) * *price.Input
		paid := float64(sum.plain)**price.Input + float64(sum.read)*price.OfCachedInput() + float64(sum.write)*price.OfCacheWrite()
		if share := float64(sum.read) / float64(sum.total()); share < 0.9 || paid > 0.2*whole {
			t.Errorf("%s: %.1f %% is read, and costs %.3f of what it would: %+v", preset.Name, 100*share, paid/whole, sum)
		}
		fmt.Fprintf(&table, "| %s (%s) | %d | %.1f %% | %.1f %% | $%.2f | $%.2f | %.2f |\n", preset.Model.Name, price.AsOf, sum.total(),
			100*float64(sum.read)/float64(sum.total()), 100*float64(sum.write)/float64(sum.total()), whole/1e6, paid/1e6, paid/whole)
	}
	docs, err := os.ReadFile("../../docs/costs.md")
	if err != nil || !strings.Contains(string(docs), table.String()) {
		t.Errorf("docs/costs.md lacks (%v)\n%s", err, table.String())
	}
	chat := task.Model{Name: "x", Wires: []string{"chat"}}
	if sum := sumKept(runTurns(t, chat, "role", &cachingProvider{keeper: newKeeper()}, nil)); float64(sum.read) < 0.9*float64(sum.total()) {
		t.Errorf("chat: %+v", sum)
	}
	for _, m := range []task.Model{anthropicModel, reasoningModel, chat} {
		sum := sumKept(runTurns(t, m, "role", &cachingProvider{keeper: newKeeper()}, func(turn int, h []openai.ChatCompletionMessage) {
			h[0].Content = fmt.Sprintf("At %d o'clock. %s", turn, h[0].Content) // what a clock in the system prompt would do
		}))
		if float64(sum.read) > 0.03*float64(sum.total()) {
			t.Errorf("%s: with another beginning each turn %+v", m.Name, sum)
		}
	}
}

// TestNextRoleReadsTheFormersCache: tools, system prompt and common block of the next role's
// first request are read, by marks as without.
func TestNextRoleReadsTheFormersCache(t *testing.T) {
	for _, m := range []task.Model{anthropicModel, reasoningModel} {
		p := &cachingProvider{keeper: newKeeper()}
		runTurns(t, m, "one", p, nil)
		if first := runTurns(t, m, "two", p, nil)[0]; first.read < 4_800 {
			t.Errorf("%s: %+v", m.Name, first)
		}
	}
}
