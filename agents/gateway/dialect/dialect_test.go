package dialect

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestForPath(t *testing.T) {
	for path, want := range map[string]Dialect{
		"/v1/chat/completions": Chat, "/chat/completions": Chat,
		"/v1/responses": Responses, "/v1/messages": Messages, "/messages": Messages,
		"/v1beta/models/gemini-3:generateContent": Gemini, "/v1/models/gemini-3:streamGenerateContent": Gemini, "/v1beta/models/qwen3:8b:generateContent": Gemini,
	} {
		if d, ok := ForPath(path); !ok || d != want {
			t.Errorf("ForPath(%q) = %v, %v", path, d, ok)
		}
		if d, ok := ForPath(want.Path()); !ok || d != want {
			t.Errorf("the path of %v is not its own", want)
		}
	}
	for _, path := range []string{"/v1/completions", "/v1/responses/resp_1", "/v1", "", "/v1/v1/messages",
		"/v1beta/models/m:countTokens", "/v1beta/models/m:embedContent", "/v1beta/models/:generateContent", "/v1beta/models/m", "/v1beta/chat/completions", "/models/m:generateContent"} {
		if _, ok := ForPath(path); ok {
			t.Errorf("ForPath(%q) is known", path)
		}
	}
}

// The same conversation in each dialect is the same request.
var conversation = map[Dialect]string{
	Chat: `{"model":"m","stream":true,"max_tokens":7,"tools":[{"type":"function","function":{"name":"b"}},{"type":"function","function":{"name":"a"}}],
		"messages":[{"role":"developer","content":"be kind"},{"role":"user","content":[{"type":"text","text":"hi"}]},
		{"role":"assistant","content":"let me see","tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{\"p\":1}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"one"}]}`,
	Messages: `{"model":"m","stream":true,"max_tokens":7,"tools":[{"name":"b","input_schema":{}},{"name":"a"}],"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],
		"messages":[{"role":"user","content":"hi"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"let me see"},{"type":"tool_use","id":"c1","name":"a","input":{"p":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"}]}]}]}`,
	Responses: `{"model":"m","stream":true,"max_output_tokens":7,"tools":[{"type":"function","name":"b"},{"type":"function","name":"a"}],"instructions":"be kind",
		"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"let me see"}]},
		{"type":"function_call","call_id":"c1","name":"a","arguments":"{\"p\":1}"},
		{"type":"function_call_output","call_id":"c1","output":"one"}]}`,
}

func TestParseRequestIsTheSameInEveryDialect(t *testing.T) {
	want := []Message{
		{Role: "system", Text: "be kind"},
		{Role: "user", Text: "hi"},
		{Role: "assistant", Text: "let me see", Calls: []Call{{ID: "c1", Name: "a", Args: `{"p":1}`}}},
		{Role: "tool", Text: "one"},
	}
	for d, body := range conversation {
		r, err := ParseRequest(d, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r.ReadMessages()
		if !reflect.DeepEqual(r.Messages, want) {
			t.Errorf("%s: messages %+v", d.Path(), r.Messages)
		}
		if r.Model != "m" || !r.Stream || r.MaxOutput != 7 || !reflect.DeepEqual(r.Tools, []string{"a", "b"}) {
			t.Errorf("%s: %+v", d.Path(), r)
		}
	}
}

func TestImagesAreToldApart(t *testing.T) {
	text := func(data string) string {
		r, err := ParseRequest(Messages, []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"data":"`+data+`"}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.ReadMessages()
		return r.Messages[0].Text
	}
	if a, b := text("AAAA"), text("AAAB"); a == b || !strings.HasPrefix(a, "[image ") {
		t.Errorf("images are %q and %q", a, b)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	for _, tt := range []struct{ body, says string }{
		{``, "the body is no JSON object: unexpected EOF"},
		{`{"model":"m"`, "the body is no JSON object: jsontext: unexpected EOF after offset 12"},
		{`[]`, "the body is no JSON object: it begins with ["},
		{`null`, "the body is no JSON object"},
		{`{"model":"m"} {}`, "the body is no JSON object: more than one JSON value"},
		{`{"messages":[]}`, `"model" is missing`},
		{`{"Model":"dear"}`, `"model" is missing`},
		{`{"model":["dear"]}`, `"model" is missing`},
	} {
		if _, err := ParseRequest(Chat, []byte(tt.body)); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v instead of %q", tt.body, err, tt.says)
		}
	}
}

func TestBodyChangesModelAndUsageOnly(t *testing.T) {
	r, err := ParseRequest(Chat, []byte(`{"model":"alias","stream":true,"stream_options":{"include_obfuscation":false},"seed":9007199254740993,"messages":[{"role":"user","content":"<a&b>"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Body("real", true)
	const want = `{"model":"real","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"seed":9007199254740993,"messages":[{"role":"user","content":"<a&b>"}]}`
	if string(got) != want {
		t.Errorf("body is\n%s\ninstead of\n%s", got, want)
	}
	if got = r.Body("real", false); strings.Contains(string(got), "include_usage") {
		t.Errorf("usage is asked for without need: %s", got)
	}
}

// Provider caches compare prefixes, so the conversation goes on byte for byte. A field that comes
// twice, however its name is written, goes on once: providers differ in which of the two they read.
func TestBodyKeepsBytes(t *testing.T) {
	const said = `[ {"role":"user", "content":"\u00e9\/ \ud83d\ude00 <&>", "content" :"b"},` + "\n\t" + `{"n":1.0e+2} ]`
	r, err := ParseRequest(Chat, []byte(`{"seed":1,"model":"dear","messages":[],"mod\u0065l":"alias",  "messages" : `+said+` ,"user":"u"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(r.Body("real", true)), `{"seed":1,"model":"real","messages":`+said+`,"user":"u"}`; r.Model != "alias" || got != want {
		t.Errorf("of model %s the body is\n%s\ninstead of\n%s", r.Model, got, want)
	}
}

// What can't be written, which nothing here is, is null rather than no JSON.
func TestWriteJSONIsAlwaysJSON(t *testing.T) {
	for want, v := range map[string]any{"null": math.NaN(), `{"a":"<&>"}`: object{"a": "<&>"}} {
		if got := string(writeJSON(v)); got != want {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
}

var replies = []Answer{
	{Text: "hello", Finish: FinishStop},
	{Calls: []Call{{ID: "c1", Name: "read_file", Args: `{"path":"a.go"}`}}, Finish: FinishCalls},
	{Text: "two\nlines", Calls: []Call{{ID: "c1", Name: "a", Args: `{}`}, {ID: "c2", Name: "b", Args: `{"n":1.50,"s":"ü\"<"}`}}, Finish: FinishCalls},
	{Text: "cut", Finish: FinishLength},
	{Text: "no", Finish: FinishFilter},
}

// What Reply writes is read as the same answer, streamed or not, in each dialect.
func TestReplyIsReadBack(t *testing.T) {
	usage := Usage{In: 100, Out: 20, CacheRead: 30, HasIn: true, HasOut: true}
	for _, want := range replies {
		want.Usage = usage
		for _, d := range []Dialect{Chat, Responses, Messages, Gemini} {
			reply := Reply{Answer: want, ID: "x-1", Model: "m"}
			got, err := ParseAnswer(d, reply.Body(d))
			if err != nil {
				t.Fatal(err)
			}
			compareAnswers(t, d.Path(), got, want)

			c := NewCollector(d)
			events, err := readAll(t, string(reply.Stream(d, true)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range events {
				if c.Done() && string(ev.Data) != "[DONE]" && d != Chat {
					t.Errorf("%s: an event after the end: %s", d.Path(), ev.Raw)
				}
				c.Add(ev)
			}
			if !c.Done() || c.Err() != nil {
				t.Errorf("%s: the stream has no end: %v", d.Path(), c.Err())
			}
			compareAnswers(t, d.Path()+" stream", c.AnswerSoFar(), want)
		}
	}
}

func compareAnswers(t *testing.T, what string, got, want Answer) {
	t.Helper()
	for _, a := range []*Answer{&got, &want} {
		for i := range a.Calls {
			a.Calls[i].Args = Args(a.Calls[i].Args.Canonical())
		}
	}
	if got.Bytes == 0 {
		t.Errorf("%s: without size: %+v", what, got)
	}
	got.Bytes = 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v\ninstead of %+v", what, got, want)
	}
}

func TestAnswersThatAreMoreThanText(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dialect
		body string
	}{
		"reasoning":       {Chat, `{"choices":[{"message":{"content":"a","reasoning_content":"hm"},"finish_reason":"stop"}]}`},
		"two choices":     {Chat, `{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}`},
		"thinking":        {Messages, `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"}]}`},
		"text after call": {Messages, `{"content":[{"type":"tool_use","id":"1","name":"n","input":{}},{"type":"text","text":"a"}]}`},
		"reasoning item":  {Responses, `{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`},
	} {
		a, err := ParseAnswer(c.d, []byte(c.body))
		if err != nil || a.Text != "a" || a.Bytes < 2 {
			t.Errorf("%s: text %q of %d bytes, error %v", name, a.Text, a.Bytes, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dialect
		body string
		want Usage
	}{
		"openai": {Chat, `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60}}}`,
			Usage{In: 100, Out: 5, CacheRead: 60, HasIn: true, HasOut: true}},
		"openrouter with cost": {Chat, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.0012}}`,
			Usage{In: 10, Out: 5, HasIn: true, HasOut: true, CostUSD: 0.0012, HasCost: true}},
		"openrouter with an own key": {Chat, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":0.5}}}`,
			Usage{In: 10, Out: 5, HasIn: true, HasOut: true, CostUSD: 0.75, HasCost: true}},
		"anthropic, kept for an hour": {Messages, `{"content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600},"output_tokens":5}}`,
			Usage{In: 1010, Out: 5, CacheWrite: 1000, CacheHour: 600, HasIn: true, HasOut: true}},
		"anthropic adds its caches": {Messages, `{"content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000,"output_tokens":5}}`,
			Usage{In: 1110, Out: 5, CacheRead: 100, CacheWrite: 1000, HasIn: true, HasOut: true}},
		"responses":     {Responses, `{"output":[],"usage":{"input_tokens":10,"output_tokens":5}}`, Usage{In: 10, Out: 5, HasIn: true, HasOut: true}},
		"none":          {Chat, `{"choices":[]}`, Usage{}},
		"null":          {Chat, `{"choices":[],"usage":null}`, Usage{}},
		"negative":      {Chat, `{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":1}}`, Usage{Out: 1, HasOut: true}},
		"beyond belief": {Chat, `{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":"7"}}`, Usage{}},
	} {
		a, err := ParseAnswer(c.d, []byte(c.body))
		if err != nil || a.Usage != c.want {
			t.Errorf("%s: %+v, %v instead of %+v", name, a.Usage, err, c.want)
		}
	}
}

// What the first event says of caches is not lost where the last repeats the input alone.
func TestUsageOfStreams(t *testing.T) {
	c := NewCollector(Messages)
	for _, data := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_1h_input_tokens":600},"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"output_tokens":5}}`,
	} {
		c.Add(Event{Data: []byte(data)})
	}
	want := Usage{In: 1110, Out: 5, CacheRead: 100, CacheWrite: 1000, CacheHour: 600, HasIn: true, HasOut: true}
	if got := c.AnswerSoFar().Usage; got != want {
		t.Errorf("%+v instead of %+v", got, want)
	}
}

// A tool's name comes once, in pieces, or again and again: MiniMax repeats it in each event.
func TestNamesInStreams(t *testing.T) {
	for _, names := range [][]string{{"find", "", ""}, {"fi", "nd", ""}, {"find", "find", "find"}} {
		c := NewCollector(Chat)
		for _, name := range names {
			c.Add(Event{Data: []byte(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"` + name + `","arguments":"{}"}}]}}]}`)})
		}
		if got := c.AnswerSoFar().Calls; len(got) != 1 || got[0].Name != "find" || got[0].Args != "{}{}{}" {
			t.Errorf("%q: %+v", names, got)
		}
	}
}

func TestErrorsInsideAnswers(t *testing.T) {
	for body, temporary := range map[string]bool{
		`{"error":{"code":502,"message":"upstream down"}}`:          true,
		`{"error":{"code":"429","message":"slow down"}}`:            true,
		`{"error":{"type":"overloaded_error","message":"busy"}}`:    true,
		`{"error":{"code":402,"message":"insufficient credits"}}`:   false,
		`{"error":{"type":"invalid_request_error","message":"no"}}`: false,
		`{"error":"plain text"}`:                                    false,
	} {
		_, err := ParseAnswer(Chat, []byte(body))
		var s *StreamError
		if !errors.As(err, &s) || s.Temporary() != temporary || s.Message == "" {
			t.Errorf("%s: %v, temporary %v", body, err, s != nil && s.Temporary())
		}
	}
	for body, says := range map[string]string{
		``: "no JSON: EOF", `<html>`: "no JSON: invalid character '<' looking for", `{} {}`: "no JSON: more than one JSON value",
		`[1]`: "no JSON object",
	} {
		if _, err := ParseAnswer(Chat, []byte(body)); !errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v instead of %q", body, err, says)
		}
	}
}

func TestErrorBodiesAreRead(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"error":{"message":"m","type":"t","param":null,"code":"c"}}`:       {"c", "m"},
		`{"error":{"message":"m","type":"t","code":null}}`:                   {"t", "m"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`: {"overloaded_error", "m"},
		`{"error":{"message":"m","code":402}}`:                               {"402", "m"},
		`[{"error":{"code":400,"message":"m","status":"INVALID"}}]`:          {"400", "m"},
		`{"object":"error","message":"m","code":400}`:                        {"", "m"},
		`{"detail":"m"}`:           {"", "m"},
		`{"detail":[{"msg":"m"}]}`: {"", `[{"msg":"m"}]`},
		`<html>502</html>`:         {"", ""},
		`7`:                        {"", ""},
	} {
		code, message := ErrorMessage([]byte(body))
		if code != want[0] || message != want[1] {
			t.Errorf("%s: %q, %q", body, code, message)
		}
	}
	for _, d := range []Dialect{Chat, Responses, Messages} {
		if _, m := ErrorMessage(ErrorBody(d, 400, "c", "why")); m != "why" {
			t.Errorf("%s: its own error body says %q", d.Path(), m)
		}
		c := NewCollector(d)
		events, err := readAll(t, "data: {}"+string(ErrorEvent(d, 502, "c", "why")), 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			c.Add(ev)
		}
		if c.Err() == nil || !strings.Contains(c.Err().Error(), "why") || c.Done() {
			t.Errorf("%s: its own error event is read as %v", d.Path(), c.Err())
		}
	}
}

func TestCanonicalArgs(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a":[1.50] }`: `{"a":[1.50],"b":1}`, "": "{}", "  ": "{}", "not json": "not json", `{"a":1} x`: `{"a":1} x`,
	} {
		if got := Args(in).Canonical(); got != want {
			t.Errorf("Args(%q).Canonical() = %q", in, got)
		}
	}
}

// FuzzParse: no body of a client or a provider makes the parsers fail in any
// other way than by an error, and what is passed on is JSON again.
func FuzzParse(f *testing.F) {
	for _, body := range conversation {
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"model":1,"messages":[{"content":{"a":null}},7],"input":[[]],"tools":[null],"n":1e99}`))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[7]}}],"content":[{"type":"tool_use"}],"output":[{"type":"message","content":7}],"usage":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range []Dialect{Chat, Responses, Messages} {
			if r, err := ParseRequest(d, b); err == nil {
				if body := r.Body("m", true); !json.Valid(body) {
					t.Fatalf("%q is passed on as %q", b, body)
				}
			}
			if a, err := ParseAnswer(d, b); err == nil {
				if a.Usage.In < 0 || a.Usage.Out < 0 {
					t.Fatalf("usage %+v", a.Usage)
				}
				for _, d := range []Dialect{Chat, Responses, Messages} {
					if !json.Valid(Reply{Answer: a}.Body(d)) {
						t.Fatal("a reply that is no JSON")
					}
				}
			}
			ErrorMessage(b)
		}
	})
}
