package gateway

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// foreigner is a client whose wire the provider does not speak.
type foreigner struct {
	d             dialect.Dialect
	path, streams string
	plain, stream string // requests with the tool f
}

func foreigners() []foreigner {
	const tools = `"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	return []foreigner{
		{dialect.Messages, "/v1/messages", "/v1/messages", `{"model":"main","max_tokens":100,"messages":[{"role":"user","content":"hi"}],` + tools + `}`,
			`{"model":"main","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}],` + tools + `}`},
		{dialect.Responses, "/v1/responses", "/v1/responses", `{"model":"main","max_output_tokens":100,"input":"hi","tools":[{"type":"function","name":"f"}]}`,
			`{"model":"main","max_output_tokens":100,"stream":true,"input":"hi","tools":[{"type":"function","name":"f"}]}`},
		{dialect.Gemini, "/v1beta/models/main:generateContent", googleStream,
			`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"functionDeclarations":[{"name":"f"}]}]}`,
			`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"functionDeclarations":[{"name":"f"}]}]}`},
	}
}

// chatOnly is a model of a provider that speaks chat alone.
func chatOnly(u *upstream) Model {
	m := u.model(OpenAI)
	m.Provider.Wires = []dialect.Dialect{dialect.Chat}
	return m
}

func toolChunk(index, id, name, args string) string {
	return chunk(`{"tool_calls":[{"index":`+index+`,"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":"`+args+`"}}]}`, "null")
}

// Each client is answered in its own dialect, streamed or not, and each answer is counted.
func TestChatAnswersForeigners(t *testing.T) {
	const ended = `{"id":"x","choices":[{"index":0,"message":{"role":"assistant",%},"finish_reason":"#"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":7}}}`
	whole := func(message, finish string) string {
		return strings.NewReplacer("%", message, "#", finish).Replace(ended)
	}
	for name, c := range map[string]struct {
		plain  string
		stream []string
		want   dialect.Answer
	}{
		"text": {whole(`"content":"hello"`, "stop"), []string{chunk(`{"content":"hel"}`, "null"), chunk(`{"content":"lo"}`, "stop")}, dialect.Answer{Text: "hello", Finish: dialect.FinishStop}},
		"calls at once": {whole(`"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]`, "tool_calls"),
			[]string{toolChunk("0", "1", "f", ""), toolChunk("1", "2", "f", "{}"), toolChunk("0", "", "", `{\"a\":1}`), chunk(`{}`, "tool_calls")},
			dialect.Answer{Finish: dialect.FinishCalls, Calls: []dialect.Call{{ID: "1", Name: "f", Args: `{"a":1}`}, {ID: "2", Name: "f", Args: "{}"}}}},
		"length":         {whole(`"content":"hel"`, "length"), []string{chunk(`{"content":"hel"}`, "length")}, dialect.Answer{Text: "hel", Finish: dialect.FinishLength}},
		"content_filter": {whole(`"content":"no"`, "content_filter"), []string{chunk(`{"content":"no"}`, "content_filter")}, dialect.Answer{Text: "no", Finish: dialect.FinishFilter}},
		"refusal":        {whole(`"content":null,"refusal":"no"`, "stop"), []string{chunk(`{"refusal":"no"}`, "stop")}, dialect.Answer{Text: "no", Finish: dialect.FinishFilter}},
	} {
		for _, f := range foreigners() {
			u, m := newUpstream(t, answer(200, c.plain), events(append(c.stream, strings.Replace(usageChunk, `"prompt_tokens"`, `"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":7},"prompt_tokens"`, 1), doneChunk)...)), &meter{}
			file := filepath.Join(t.TempDir(), "c.jsonl")
			g := start(t, Options{Models: []Model{chatOnly(u)}, Meter: m, Record: recorder(t, file, 1, "r")})
			plain, streamed := post(t, g, f.path, f.plain), post(t, g, f.streams, f.stream)
			one, err := dialect.ParseAnswer(f.d, []byte(plain.body))
			if err != nil {
				t.Fatalf("%s, %s: %v in %s", name, f.d.Name(), err, plain.body)
			}
			for how, got := range map[string]dialect.Answer{"plain": one, "streamed": collectEvents(f.d, streamed.body)} {
				for i := range got.Calls {
					got.Calls[i].Args = dialect.Args(got.Calls[i].Args.Canonical())
				}
				want, _ := json.Marshal([]any{c.want.Text, c.want.Finish, c.want.Calls})
				have, _ := json.Marshal([]any{got.Text, got.Finish, got.Calls})
				if string(have) != string(want) || got.Usage.In != 100 || got.Usage.Out != 20 || got.Usage.CacheRead != 40 || got.Usage.Reasoning != 7 {
					t.Errorf("%s, %s, %s: %s (%+v) instead of %s", name, f.d.Name(), how, have, got.Usage, want)
				}
			}
			m.is(t, 2, 200, 40, 2*(100*1+20*10)/1e6)
			for _, asked := range u.all() {
				if asked.path != "/v1/chat/completions" || asked.header.Get("Authorization") != "Bearer "+providerKey || !strings.Contains(asked.body, `"max_tokens":100`) {
					t.Errorf("%s asks %s with %s", f.d.Name(), asked.path, asked.body)
				}
			}
			// What is recorded is the client's own, and played without translation.
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			u.Close()
			g = start(t, Options{Replay: player(t, file, 1, "r")})
			if a, b := post(t, g, f.path, f.plain), post(t, g, f.streams, f.stream); a.body != plain.body || b.body != streamed.body {
				t.Errorf("%s, %s: the replay says\n%s%s\ninstead of\n%s%s", name, f.d.Name(), a.body, b.body, plain.body, streamed.body)
			}
		}
	}
}

// A provider's failure has the client's form, and its key is in none.
func TestFailuresInTheFormOfForeigners(t *testing.T) {
	for _, status := range []int{400, 401, 429, 500} {
		for _, f := range foreigners() {
			u := newUpstream(t, answer(status, `{"error":{"message":"fake `+providerKey+` failure","type":"x","code":"fake_failure"}}`, "X-Should-Retry", "false"))
			g := start(t, Options{Models: []Model{chatOnly(u)}})
			r := post(t, g, f.streams, f.stream)
			_, message := dialect.ErrorMessage([]byte(r.body))
			form := map[dialect.Dialect]string{dialect.Messages: `"type":"error"`, dialect.Responses: `"code":"provider_failed"`, dialect.Gemini: `"status":"`}[f.d]
			if r.status != status || !strings.Contains(message, "model provider test") || !strings.Contains(r.body, form) || strings.Contains(r.body, providerKey) {
				t.Errorf("%d, %s: %d %s", status, f.d.Name(), r.status, r.body)
			}
		}
	}
}

// A stream that breaks off, or ends without a reason, is an error, never an answer; it counts.
func TestCutStreamsOfForeigners(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"cut":        cutOff(events(chunk(`{"content":"hel"}`, "null"))),
		"ends early": events(chunk(`{"content":"hel"}`, "null")),
		"no reason":  events(chunk(`{"content":"hel"}`, "null"), doneChunk),
		"unknown":    events(chunk(`{"content":"hel"}`, "insufficient_system_resource"), doneChunk),
		"error":      events(chunk(`{"content":"hel"}`, "null"), `data: {"error":{"message":"broken","code":"server_error"}}`+"\n\n"),
	} {
		for _, f := range foreigners() {
			u, m := newUpstream(t, handler), &meter{}
			var call Call
			g := start(t, Options{Models: []Model{chatOnly(u)}, Meter: m, OnCall: func(c Call) { call = c }})
			r := post(t, g, f.streams, f.stream)
			c := dialect.NewCollector(f.d)
			for events := dialect.NewEventReader(strings.NewReader(r.body), 1<<20); ; {
				ev, err := events.Next()
				if err != nil {
					break
				}
				c.Add(ev)
			}
			if c.Done() || c.Err() == nil || r.err == nil && f.d != dialect.Gemini {
				t.Errorf("%s, %s: done %v, %v, %v: %s", name, f.d.Name(), c.Done(), c.Err(), r.err, r.body)
			}
			if m.calls != 1 || m.out == 0 {
				t.Errorf("%s, %s: %d calls, %d out are counted", name, f.d.Name(), m.calls, m.out)
			}
			if err := g.Close(); err != nil { // OnCall was called then
				t.Fatal(err)
			}
			if broke := name == "cut" || name == "ends early"; broke != (call.AtMost == 100) {
				t.Errorf("%s, %s: %d of %d tokens out are called the most", name, f.d.Name(), call.AtMost, call.Out)
			}
		}
	}
}

func TestForeignersKeepBudgets(t *testing.T) {
	for _, f := range foreigners() {
		u := newUpstream(t, answer(200, strings.Replace(chatBody, `"usage"`, `"no"`, 1)))
		m := &meter{}
		g := start(t, Options{Models: []Model{chatOnly(u)}, Budget: Budget{Tokens: 10}, Meter: m})
		first, second := post(t, g, f.path, f.plain), post(t, g, f.path, f.plain)
		if first.status != 200 || second.status != 400 || !strings.Contains(second.body, "the token budget is spent") || len(u.all()) != 1 {
			t.Errorf("%s: %d, %d %s", f.d.Name(), first.status, second.status, second.body)
		}
		if got, err := dialect.ParseAnswer(f.d, []byte(first.body)); err != nil || got.Usage.In != m.in || got.Usage.Out != m.out || m.in == 0 {
			t.Errorf("%s: the client is told %+v, counted are %d and %d", f.d.Name(), got.Usage, m.in, m.out)
		}
	}
}

func TestForeignersAreCountedByEstimate(t *testing.T) {
	u := newUpstream(t, answer(404, ""))
	g := start(t, Options{Models: []Model{chatOnly(u)}})
	for path, want := range map[string]string{"/v1/messages/count_tokens": `{"input_tokens":4}`, "/v1beta/models/main:countTokens": `{"totalTokens":4}`} {
		body := `{"x":[]}   `
		if strings.Contains(path, "messages") {
			body, want = `{"model":"main"}`, `{"input_tokens":6}`
		}
		if r := post(t, g, path, body); r.status != 200 || r.body != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if len(u.all()) != 0 {
		t.Error("a provider was asked that knows no such question")
	}
}

// What has no like in chat is refused by name before anybody is asked.
func TestForeignersAreRefusedByName(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	g := start(t, Options{Models: []Model{chatOnly(u)}})
	for body, says := range map[string]string{
		`{"model":"main","input":"hi","previous_response_id":"resp_1"}`:                                     `previous_response_id "resp_1" names nothing that is kept`,
		`{"model":"main","input":[{"type":"item_reference","id":"msg_1"}]}`:                                 `item_reference "msg_1" names nothing that is kept`,
		`{"model":"main","input":"hi","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`: `"web_search", which tool_choice forces`,
	} {
		if r := post(t, g, "/v1/responses", body); r.status != 400 || !strings.Contains(strings.ReplaceAll(r.body, `\"`, `"`), says) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if len(u.all()) != 0 {
		t.Error("the provider was asked")
	}
}

// Models that reason know the limit of an answer by one name alone, and say so.
func TestTheOtherNameOfTheLimit(t *testing.T) {
	u := newUpstream(t, answer(400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error"}}`), answer(200, chatBody))
	g := start(t, Options{Models: []Model{chatOnly(u)}})
	f := foreigners()[0]
	if r := post(t, g, f.path, f.plain); r.status != 200 || len(u.all()) != 2 || !strings.Contains(u.all()[1].body, `"max_completion_tokens":100`) {
		t.Errorf("%d %s, asked %d times", r.status, r.body, len(u.all()))
	}
}

// A native wire is taken where the provider has one.
func TestNativeWiresGoFirst(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	m := u.model(OpenAI)
	m.Provider.Wires = []dialect.Dialect{dialect.Chat, dialect.Messages}
	g := start(t, Options{Models: []Model{m}})
	f := foreigners()[0]
	post(t, g, f.path, f.plain)
	if got := u.all()[0]; got.path != "/v1/messages" || got.header.Get("X-Api-Key") != providerKey {
		t.Errorf("asked %s", got.path)
	}
}

// TestAnswersHaveIDsOfTheirOwn: Claude Code takes messages of one id for parts of one, and would
// put a later call before an earlier result. Calls without an id get one that no other answer has.
func TestAnswersHaveIDsOfTheirOwn(t *testing.T) {
	const call = `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	ids := regexp.MustCompile(`"(id|call_id|responseId)":"([^"]+)"`)
	for _, f := range foreigners() {
		u := newUpstream(t, answer(200, call), answer(200, call))
		g := start(t, Options{Models: []Model{chatOnly(u)}})
		seen := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(post(t, g, f.path, f.plain).body, -1) {
			seen[m[2]] = true
		}
		for _, m := range ids.FindAllStringSubmatch(post(t, g, f.path, f.plain).body, -1) {
			if seen[m[2]] {
				t.Errorf("%s: two answers have %s", f.d.Name(), m[0])
			}
		}
		if len(seen) == 0 {
			t.Errorf("%s: no ids", f.d.Name())
		}
	}
}

// A client of the responses API refers to former answers: the provider gets the whole conversation,
// which counts. What the client asked not to keep is not there.
func TestFormerAnswersAreReferredTo(t *testing.T) {
	const spoke = `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"look","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	streamed := events(chunk(`{"content":"look"}`, "null"), toolChunk("0", "1", "f", "{}"), chunk(`{}`, "tool_calls"), doneChunk)
	const first = `"model":"main","tools":[{"type":"function","name":"f"}],"input":"` + "hi, this is the question" + `"`
	const conversation = `{"content":"hi, this is the question","role":"user"},{"content":"look","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"1","type":"function"}]},` +
		`{"content":"done","role":"tool","tool_call_id":"1"}`

	for how, said := range map[string]http.HandlerFunc{"plain": answer(200, spoke), "streamed": streamed} {
		quiet := answer(200, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
		u := newUpstream(t, said, quiet, quiet, said, quiet)
		m := &meter{}
		g := start(t, Options{Models: []Model{chatOnly(u)}, Meter: m})
		post(t, g, "/v1/responses", `{`+first+`,"stream":`+strconv.FormatBool(how == "streamed")+`}`)

		const asks, result = `{"model":"main","input":[`, `{"type":"function_call_output","call_id":"1","output":"done"}]`
		const call = `{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},`
		for _, body := range []string{
			asks + result + `,"previous_response_id":"resp_uwf-1"}`,
			asks + `{"role":"user","content":"hi, this is the question"},{"type":"item_reference","id":"msg_uwf-1"},` + call + result + `}`,
		} {
			before := m.in
			if r := post(t, g, "/v1/responses", body); r.status != 200 {
				t.Fatalf("%s: %d %s", how, r.status, r.body)
			}
			if got, least := m.in-before, dialect.Estimate(len(body)); got <= least {
				t.Errorf("%s: %d tokens are counted, no more than the %d of the request itself", how, got, least)
			}
			if all := u.all(); !strings.Contains(all[len(all)-1].body, `"messages":[`+conversation+`]`) {
				t.Errorf("%s: %s becomes %s", how, body, all[len(all)-1].body)
			}
		}

		post(t, g, "/v1/responses", `{`+first+`,"store":false,"stream":`+strconv.FormatBool(how == "streamed")+`}`)
		if r := post(t, g, "/v1/responses", asks+result+`,"previous_response_id":"resp_uwf-4"}`); r.status != 400 || !strings.Contains(r.body, "store: false") {
			t.Errorf("%s: what was not to be kept is kept: %d %s", how, r.status, r.body)
		}
		if r := post(t, g, "/v1/responses", asks+`{"role":"user","content":"and?"}],"previous_response_id":"resp_uwf-2"}`); r.status != 200 ||
			!strings.Contains(u.all()[4].body, `"messages":[`+conversation+`,{"content":"hello","role":"assistant"},{"content":"and?","role":"user"}]`) {
			t.Errorf("%s: %d %s for %s", how, r.status, r.body, u.all()[4].body)
		}
	}
}

// Fields that a provider refuses by name are left out, with a word, and not sent to that model again.
func TestRefusedFieldsAreLeftOut(t *testing.T) {
	const request = `{"model":"main","input":"hi","prompt_cache_key":"k","service_tier":"flex","metadata":{"a":"b"}}`
	refusal := answer(422, `{"detail":[{"type":"extra_forbidden","loc":["body","prompt_cache_key"],"msg":"Extra inputs are not permitted"},{"loc":["body","metadata"]}]}`)
	u := newUpstream(t, refusal, answer(200, chatBody), answer(200, chatBody))
	var dropped []string
	g := start(t, Options{Models: []Model{chatOnly(u)}, OnCall: func(c Call) { dropped = append(dropped, c.Dropped...) }})
	for range 2 {
		if r := post(t, g, "/v1/responses", request); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if err := g.Close(); err != nil { // OnCall was called then
		t.Fatal(err)
	}

	asked := u.all()
	if len(asked) != 3 || !strings.Contains(asked[0].body, `"prompt_cache_key":"k"`) {
		t.Fatalf("%d requests, the first with %s", len(asked), asked[0].body)
	}
	for _, r := range asked[1:] {
		if strings.Contains(r.body, "prompt_cache_key") || strings.Contains(r.body, "metadata") || !strings.Contains(r.body, `"service_tier":"flex"`) {
			t.Errorf("it asks with %s", r.body)
		}
	}
	if got := strings.Join(dropped, ", "); got != "prompt_cache_key (the provider refuses it), metadata (the provider refuses it)" {
		t.Errorf("the run is told of %s", got)
	}
}
