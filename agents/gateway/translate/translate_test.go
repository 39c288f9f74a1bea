package translate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

func mustTranslate(t testing.TB, d dialect.Dialect, body string, o Options) *Translation {
	t.Helper()
	var r *dialect.Request
	var err error
	if d == dialect.Gemini {
		r, err = dialect.ParseGemini(dialect.GeminiPath{Model: "m", Stream: true}, []byte(body))
	} else {
		r, err = dialect.ParseRequest(d, []byte(body))
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	tr, err := NewTranslation(r, o)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return tr
}

// The fields and forms are those that claude 2.1.330, codex 0.169 and gemini 0.61 were seen to
// send: a first question, two calls at once, their results.
var talks = map[dialect.Dialect]string{
	dialect.Messages: `{"model":"m","stream":true,"max_tokens":32000,"system":[{"type":"text","text":"You are"},{"type":"text","text":"an agent","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"Bash","description":"run","input_schema":{"type":"object"}},{"name":"mcp.x/y","input_schema":{"type":"object"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"system","content":[{"type":"text","text":"# Environment"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"t2","name":"mcp.x/y","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"one"},{"type":"text","text":"and?"}]},
		{"role":"system","content":"be quick"}],
		"tool_choice":{"type":"any","disable_parallel_tool_use":true},"metadata":{"user_id":"u"},"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"},"stop_sequences":["x"]}`,
	dialect.Responses: `{"model":"m","stream":true,"instructions":"You are","store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"a":"b"},
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"an agent"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
		{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look"}]},
		{"type":"function_call","call_id":"c1","name":"spawn_agent","namespace":"multi","arguments":"{\"a\":1}"},{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin \"x\""},
		{"type":"function_call_output","call_id":"c1","output":"one"},{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"}]}],
		"tools":[{"type":"namespace","name":"multi","tools":[{"type":"function","name":"spawn_agent","strict":false,"parameters":{"type":"object"}}]},{"type":"custom","name":"apply_patch","description":"patch","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},{"type":"web_search"}],
		"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":100}`,
	dialect.Gemini: `{"systemInstruction":{"role":"user","parts":[{"text":"You are"}]},"tools":[{"functionDeclarations":[{"name":"a","description":"d","parametersJsonSchema":{"type":"object"}},{"name":"b","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING"}}}}]}],
		"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"I look"},{"functionCall":{"name":"a","args":{"p":1}},"thoughtSignature":"s"},{"functionCall":{"name":"a"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}},{"functionResponse":{"name":"a","response":{"error":"no"}}}]}],
		"generationConfig":{"temperature":1,"topP":0.95,"topK":64,"maxOutputTokens":50,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}}}`,
}

func TestConversations(t *testing.T) {
	for d, want := range map[dialect.Dialect]string{
		dialect.Messages: `{"max_tokens":8000,"messages":[{"content":"You are\nan agent\n\n# Environment","role":"system"},{"content":"go","role":"user"},
			{"content":"I look","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\"}","name":"Bash"},"id":"t1","type":"function"},{"function":{"arguments":"{}","name":"mcp_x_y"},"id":"t2","type":"function"}]},
			{"content":"[the tool failed] one","role":"tool","tool_call_id":"t1"},{"content":"two\n[an image is left out here: this model is reached by a way that takes text alone]","role":"tool","tool_call_id":"t2"},
			{"content":"and?","role":"user"},{"content":"<system>\nbe quick\n</system>","role":"user"}],
			"model":"m","parallel_tool_calls":false,"stop":["x"],"stream":true,"tool_choice":"required",
			"tools":[{"function":{"description":"run","name":"Bash","parameters":{"type":"object"}},"type":"function"},{"function":{"name":"mcp_x_y","parameters":{"type":"object"}},"type":"function"}]}`,
		dialect.Responses: `{"max_tokens":100,"messages":[{"content":"You are\n\nan agent","role":"system"},{"content":"go","role":"user"},
			{"content":"I look","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"multi__spawn_agent"},"id":"c1","type":"function"},{"function":{"arguments":"{\"input\":\"*** Begin \\\"x\\\"\"}","name":"apply_patch"},"id":"c2","type":"function"}]},
			{"content":"one","role":"tool","tool_call_id":"c1"},{"content":"two","role":"tool","tool_call_id":"c2"}],"model":"m","prompt_cache_key":"k","reasoning_effort":"low","store":false,"stream":true,
			"tools":[{"function":{"name":"multi__spawn_agent","parameters":{"type":"object"}},"type":"function"},{"function":{"description":"patch\n\nThe input must follow this lark grammar:\nstart: x","name":"apply_patch","parameters":{"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}},"type":"function"}]}`,
		dialect.Gemini: `{"max_tokens":50,"messages":[{"content":"You are","role":"system"},{"content":"go","role":"user"},
			{"content":"I look","role":"assistant","tool_calls":[{"function":{"arguments":"{\"p\":1}","name":"a"},"id":"call_uwf_1","type":"function"},{"function":{"arguments":"{}","name":"a"},"id":"call_uwf_2","type":"function"}]},
			{"content":"one","role":"tool","tool_call_id":"call_uwf_1"},{"content":"{\"error\":\"no\"}","role":"tool","tool_call_id":"call_uwf_2"}],"model":"m","stream":true,"temperature":1,
			"tools":[{"function":{"description":"d","name":"a","parameters":{"type":"object"}},"type":"function"},{"function":{"name":"b","parameters":{"properties":{"type":{"type":"string"}},"type":"object"}},"type":"function"}],"top_p":0.95}`,
	} {
		tr := mustTranslate(t, d, talks[d], Options{Model: "m", MaxOutput: 8000})
		var plain bytes.Buffer
		if err := json.Compact(&plain, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got := string(tr.Request.Body("m", false)); got != plain.String() || len(tr.Request.Dropped) > 0 {
			t.Errorf("%s becomes (dropped: %q)\n%s\nwant\n%s", d.Name(), tr.Request.Dropped, got, plain.String())
		}
	}
}

// Results stand behind their calls, whatever the order in which they come, and none is alone.
func TestResultsStandBehindTheirCalls(t *testing.T) {
	for items, want := range map[string]string{
		`{"type":"function_call","call_id":"1","name":"a"},{"role":"user","content":"wait"},{"type":"function_call_output","call_id":"1","output":"one"}`: "assistant tool:one user:wait",
		`{"type":"function_call","call_id":"1","name":"a"}`:                                                              "assistant tool:(no result of this call is known)",
		`{"type":"function_call_output","call_id":"1","output":"one"}`:                                                   "user:[the result of a tool call that is not in this conversation]\none",
		`{"type":"function_call_output","call_id":"1","output":"one"},{"type":"function_call","call_id":"1","name":"a"}`: "user:[the result of a tool call that is not in this conversation]\none assistant tool:(no result of this call is known)",
		`{"type":"function_call","name":"a","call_id":""},{"type":"function_call_output","call_id":"","output":""}`:      "assistant tool:(no result of this call is known) user:[the result of a tool call that is not in this conversation]\n(no output)",
		`{"type":"function_call","call_id":"1","name":"a"},{"type":"function_call","call_id":"1","name":"b"},{"type":"function_call_output","call_id":"1","output":"x"},{"type":"function_call_output","call_id":"1","output":"y"}`: "assistant tool:x tool:y",
	} {
		tr := mustTranslate(t, dialect.Responses, `{"model":"m","input":[`+items+`]}`, Options{})
		var got []string
		for _, m := range listAt(decoded(t, tr.Request.Body("m", false)), "messages") {
			s := textAt(m, "role")
			if c := textAt(m, "content"); c != "" {
				s += ":" + c
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s becomes %q, not %q", items, strings.Join(got, " "), want)
		}
	}
}

func decoded(t testing.TB, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func TestToolNamesFitChat(t *testing.T) {
	long := strings.Repeat("x", 70)
	tr := newTools()
	for of, want := range map[tool]string{{name: "plain"}: "plain", {name: "a.b/c"}: "a_b_c", {name: long}: long[:64], {namespace: "n", name: "f"}: "n__f", {name: ""}: "tool"} {
		if got := tr.nameOf(of); got != want {
			t.Errorf("%+v is %q", of, got)
		}
		if c := tr.readCall(dialect.Call{Name: want}); c.Name != of.name || c.Namespace != of.namespace {
			t.Errorf("%q is read as %+v", want, c)
		}
	}
	if a, b := tr.nameOf(tool{name: "q.r"}), tr.nameOf(tool{name: "q/r"}); a != "q_r" || b != "q_r_2" {
		t.Errorf("%q and %q", a, b)
	}
	if got := tr.nameOf(tool{name: long + "y"}); len(got) != 64 || !strings.HasSuffix(got, "_2") {
		t.Errorf("%q", got)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	tr := mustTranslate(t, dialect.Messages, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, Options{})
	for _, a := range []dialect.Answer{
		{Text: "half"}, {Text: "half", Finish: "insufficient_system_resource"}, {Finish: dialect.FinishCalls, Calls: []dialect.Call{{ID: "c"}}},
	} {
		if _, err := tr.WriteAnswer(a, dialect.Usage{}); !errors.Is(err, ErrAnswer) {
			t.Errorf("%+v: %v", a, err)
		}
		s := tr.NewStream()
		s.Add(a)
		if rest, err := s.End(a, dialect.Usage{}); !errors.Is(err, ErrAnswer) || len(rest) > 0 {
			t.Errorf("%+v: %s, %v", a, rest, err)
		}
	}
}

// A call that was cut is no call; a signal of life comes while one is written.
func TestCallsThatAreCut(t *testing.T) {
	tr := mustTranslate(t, dialect.Messages, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, Options{})
	cut := dialect.Answer{Finish: dialect.FinishLength, Calls: []dialect.Call{{ID: "1", Name: "a", Args: `{"p":1}`}, {ID: "2", Name: "b", Args: `{"p":`}}}
	body, err := tr.WriteAnswer(cut, dialect.Usage{})
	got, _ := dialect.ParseAnswer(dialect.Messages, body)
	if err != nil || len(got.Calls) != 1 || got.Finish != dialect.FinishLength {
		t.Errorf("%s, %v", body, err)
	}
	s := tr.NewStream()
	pings := 0
	for range 5 * silentEvents {
		if bytes.Contains(s.Add(cut), []byte("event: ping")) {
			pings++
		}
	}
	if pings < 4 || pings > 5 {
		t.Errorf("%d signs of life", pings)
	}
}

// chatEvents are those of an answer in parts of a few bytes.
func chatEvents(a dialect.Answer) []byte {
	w := dialect.NewStreamWriter(dialect.Chat, dialect.Reply{ID: "x", Model: "m"}, true)
	out := w.Add("", "")
	for _, r := range a.Thoughts {
		out = append(out, w.Add(string(r), "")...)
	}
	for _, r := range a.Text {
		out = append(out, w.Add("", string(r))...)
	}
	return append(out, w.End(dialect.Reply{Answer: a, ID: "x", Model: "m"})...)
}

// through passes a chat stream on, and reads what the client gets.
func through(t testing.TB, d dialect.Dialect, tr *Translation, events []byte, usage dialect.Usage) (dialect.Answer, bool) {
	t.Helper()
	from, to := dialect.NewCollector(dialect.Chat), dialect.NewCollector(d)
	s := tr.NewStream()
	var given []byte
	for r := dialect.NewEventReader(bytes.NewReader(events), 1<<20); ; {
		ev, err := r.Next()
		if err != nil {
			break
		}
		from.Add(ev)
		given = append(given, s.Add(from.AnswerSoFar())...)
	}
	if !from.Done() || from.Err() != nil {
		return dialect.Answer{}, false
	}
	rest, err := s.End(from.AnswerSoFar(), usage)
	if err != nil {
		return dialect.Answer{}, false
	}
	for r := dialect.NewEventReader(bytes.NewReader(append(given, rest...)), 1<<20); ; {
		ev, err := r.Next()
		if err != nil {
			break
		}
		if !json.Valid(ev.Data) {
			t.Errorf("%s: %q is no JSON", d.Name(), ev.Data)
		}
		to.Add(ev)
	}
	if !to.Done() || to.Err() != nil {
		t.Errorf("%s: the stream has no end: %v", d.Name(), to.Err())
	}
	return to.AnswerSoFar(), true
}

func TestStreamsAreReadBack(t *testing.T) {
	usage := dialect.Usage{In: 100, Out: 20, Reasoning: 7, CacheRead: 30, HasIn: true, HasOut: true}
	for _, a := range []dialect.Answer{
		{Text: "hello, Wörld", Finish: dialect.FinishStop},
		{Text: "a", Thoughts: "hm, well", Finish: dialect.FinishLength},
		{Text: "I will not", Finish: dialect.FinishFilter},
		{Finish: dialect.FinishFilter},
		{Text: "look", Finish: dialect.FinishCalls, Calls: []dialect.Call{{ID: "c1", Name: "f", Args: `{"p":1}`}, {ID: "c2", Name: "multi__g", Args: `{}`}}},
		{Finish: dialect.FinishStop, Calls: []dialect.Call{{ID: "c1", Name: "apply", Args: `{"input":"*** \"x\""}`}}},
	} {
		for _, d := range []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini} {
			fields := map[dialect.Dialect]string{dialect.Responses: `"tools":[{"type":"namespace","name":"multi","tools":[{"type":"function","name":"g"}]},{"type":"custom","name":"apply"}],"reasoning":{"summary":"auto"}`,
				dialect.Messages: `"thinking":{"type":"adaptive"}`, dialect.Gemini: `"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`}[d]
			tr, err := NewTranslation(read(t, d, fields), Options{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			got, ok := through(t, d, tr, chatEvents(a), usage)
			body, err := tr.WriteAnswer(a, usage)
			plain, bad := dialect.ParseAnswer(d, body)
			if !ok || err != nil || bad != nil {
				t.Fatalf("%s: %v, %v", d.Name(), err, bad)
			}
			for how, got := range map[string]dialect.Answer{"streamed": got, "plain": plain} {
				wantFinish := a.Finish
				if a.Finish == dialect.FinishStop && len(a.Calls) > 0 {
					wantFinish = dialect.FinishCalls
				}
				if got.Text != a.Text || got.Finish != wantFinish || len(got.Calls) != len(a.Calls) || got.Usage != usage {
					t.Errorf("%s, %s: %+v instead of %+v", d.Name(), how, got, a)
				}
				if d == dialect.Responses && len(got.Calls) > 0 && got.Calls[0].Name == "apply" && (!got.Calls[0].Custom || got.Calls[0].Args != `*** "x"`) {
					t.Errorf("%s: %+v", how, got.Calls)
				}
				if d == dialect.Responses && len(got.Calls) == 2 && (got.Calls[1].Name != "g" || got.Calls[1].Namespace != "multi") {
					t.Errorf("%s: %+v", how, got.Calls)
				}
			}
			if a.Thoughts != "" && !bytes.Contains(body, []byte(a.Thoughts)) {
				t.Errorf("%s: the thoughts are lost in %s", d.Name(), body)
			}
		}
	}
}

// A client that takes objects alone gets the text that the model wrote, under one name that says
// what is wrong with it. It never gets an empty object: a tool would run on its defaults.
func TestBrokenArgumentsAreShown(t *testing.T) {
	for args, want := range map[dialect.Args]string{
		`{"city": "Par`:        `{"uwf_arguments_are_no_json_object":"{\"city\": \"Par"}`,
		`{"a":1}{"a":1}`:       `{"uwf_arguments_are_no_json_object":"{\"a\":1}{\"a\":1}"}`,
		`["Paris"]`:            `{"uwf_arguments_are_no_json_object":"[\"Paris\"]"}`,
		`null`:                 `{"uwf_arguments_are_no_json_object":"null"}`,
		`get_weather("Paris")`: `{"uwf_arguments_are_no_json_object":"get_weather(\"Paris\")"}`,
		"":                     `{}`,
		" \n":                  `{}`,
		`{"city":"Paris"}`:     `{"city":"Paris"}`,
	} {
		a := dialect.Answer{Text: "look", Finish: dialect.FinishCalls, Calls: []dialect.Call{{ID: "c1", Name: "f", Args: args}}}
		for _, d := range []dialect.Dialect{dialect.Messages, dialect.Gemini, dialect.Responses} {
			tr := mustTranslate(t, d, "{"+said(d)+"}", Options{Model: "m"})
			streamed, ok := through(t, d, tr, chatEvents(a), dialect.Usage{})
			body, err := tr.WriteAnswer(a, dialect.Usage{})
			plain, bad := dialect.ParseAnswer(d, body)
			if !ok || err != nil || bad != nil {
				t.Fatalf("%s: %v, %v", d.Name(), err, bad)
			}

			for how, got := range map[string]dialect.Answer{"streamed": streamed, "plain": plain} {
				if d == dialect.Responses { // its arguments are a text
					want = cmp.Or(string(args), "{}")
				}
				if got.Finish != dialect.FinishCalls || len(got.Calls) != 1 || got.Calls[0].Args.Canonical() != dialect.Args(want).Canonical() {
					t.Errorf("%s, %s: %q becomes %+v, not %s", d.Name(), how, args, got.Calls, want)
				}
			}
		}
	}
}

// No request makes the translation panic, and what it gives is a chat request.
func FuzzRequests(f *testing.F) {
	for d, body := range talks {
		f.Add(int(d), []byte(body))
	}
	f.Add(int(dialect.Responses), []byte(`{"model":"m","input":[1,null,{"type":[]},{"type":"function_call"}],"tools":[{"type":"namespace","tools":[{"type":"namespace"}]}],"tool_choice":{"type":"custom"}}`))
	f.Add(int(dialect.Messages), []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_use"},{"type":"tool_result"}]}],"tools":[{"name":""}],"tool_choice":{"type":"tool"}}`))
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		d := dialect.Dialect(1 + uint(kind)%3)
		var r *dialect.Request
		var err error
		if d == dialect.Gemini {
			r, err = dialect.ParseGemini(dialect.GeminiPath{Model: "m"}, body)
		} else {
			r, err = dialect.ParseRequest(d, body)
		}
		if err != nil {
			return
		}
		tr, err := NewTranslation(r, Options{Model: r.Model, MaxOutput: 100})
		if err != nil {
			return
		}
		if again, err := dialect.ParseRequest(dialect.Chat, tr.Request.Body(r.Model, false)); err != nil || again.Model != r.Model || again.Stream != r.Stream || len(again.Messages) == 0 {
			t.Errorf("%s: %v", tr.Request.Body(r.Model, false), err)
		}
	})
}

// Whatever chat stream comes to its end, each client gets one that it can read to its end, with
// the same text, calls and usage.
func FuzzStreams(f *testing.F) {
	f.Add(chatEvents(dialect.Answer{Text: "hi", Thoughts: "hm", Finish: dialect.FinishStop}))
	f.Add(chatEvents(dialect.Answer{Finish: dialect.FinishCalls, Calls: []dialect.Call{{ID: "1", Name: "a", Args: "{}"}}}))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"a\"}},{\"index\":0,\"function\":{\"arguments\":\"{\"}}]},\"finish_reason\":\"length\"}]}\n\n"))
	f.Fuzz(func(t *testing.T, events []byte) {
		c := dialect.NewCollector(dialect.Chat)
		for r := dialect.NewEventReader(bytes.NewReader(events), 1<<20); ; {
			ev, err := r.Next()
			if err != nil {
				break
			}
			c.Add(ev)
		}
		usage := dialect.Usage{In: 9, Out: 3, HasIn: true, HasOut: true}
		for _, d := range []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini} {
			tr, err := NewTranslation(read(t, d, ""), Options{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			got, ok := through(t, d, tr, events, usage)
			if !ok {
				continue
			}
			want, err := tr.writeReply(c.AnswerSoFar(), usage)
			if err != nil || got.Text != want.Text || len(got.Calls) != len(want.Calls) || got.Finish != want.Finish || got.Usage != usage {
				t.Errorf("%s: %+v instead of %+v, %v", d.Name(), got, want, err)
			}
			for i, c := range got.Calls {
				if c.Name != want.Calls[i].Name {
					t.Errorf("%s: call %d is of %q, not %q", d.Name(), i, c.Name, want.Calls[i].Name)
				}
			}
		}
	})
}
