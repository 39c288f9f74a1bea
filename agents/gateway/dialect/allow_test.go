package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parse reads a request of these fields beside the model, and gives what the
// provider gets of them.
func parse(t *testing.T, d Dialect, fields string) (*Request, string) {
	t.Helper()
	r, err := ParseRequest(d, []byte(`{"model":"m",`+fields+`}`))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return r, strings.Replace(string(r.Body("m", false)), `"model":"m"`, "", 1)
}

// What costs money besides tokens, or more of them than the request says, does not
// reach a provider; the rest of the request does.
func TestFieldsThatCostAreDropped(t *testing.T) {
	all := []Dialect{Chat, Responses, Messages}
	for _, c := range []struct {
		in      []Dialect
		field   string
		dropped string
	}{
		{all, `"surprise":{"price":9}`, "surprise"},
		{all, `"Model":"dear"`, "Model"},
		{all, `"MAX_TOKENS":9`, "MAX_TOKENS"},
		{all, `"models":["dear"]`, "models"},
		{all, `"fallbacks":[{"model":"dear"}]`, "fallbacks"},
		{all, `"route":"fallback"`, "route"},
		{all, `"provider":{"order":["dear"]}`, "provider"},
		{all, `"plugins":[{"id":"web"}]`, "plugins"},
		{all, `"search_parameters":{"mode":"on"}`, "search_parameters"},
		{all, `"extra_body":{"n":9}`, "extra_body"},
		{all, `"background":true`, "background"},
		{all, `"service_tier":"priority"`, "service_tier"},
		{all, `"service_tier":["priority"]`, "service_tier"},
		{all, `"stream":"true"`, "stream"},
		{all, `"stream_options":{"include_usage":"no"}`, "stream_options.include_usage"},
		{all, `"stream_options":[1]`, "stream_options"},
		{all, `"thinking":{"type":"enabled","budget_tokens":"9"}`, "thinking.budget_tokens"},
		{all, `"inference_geo":"us"`, "inference_geo"},
		{[]Dialect{Chat, Messages}, `"max_tokens":"9"`, "max_tokens"},
		{[]Dialect{Chat, Messages}, `"max_tokens":-1`, "max_tokens"},
		{[]Dialect{Chat, Messages}, `"max_tokens":1e30`, "max_tokens"},
		{[]Dialect{Chat, Messages}, `"max_tokens":0.5`, "max_tokens"},
		{[]Dialect{Responses}, `"max_tokens":5`, "max_tokens"},
		{[]Dialect{Chat}, `"max_completion_tokens":9223372036854775807`, "max_completion_tokens"},
		{[]Dialect{Responses}, `"max_output_tokens":[5]`, "max_output_tokens"},
		{[]Dialect{Chat}, `"n":9`, "n"},
		{[]Dialect{Chat}, `"n":"9"`, "n"},
		{[]Dialect{Responses, Messages}, `"n":9`, "n"},
		{all, `"best_of":9`, "best_of"},
		{[]Dialect{Chat}, `"prediction":{"type":"content","content":"x"}`, "prediction"},
		{[]Dialect{Chat}, `"web_search_options":{"search_context_size":"high"}`, "web_search_options"},
		{[]Dialect{Chat}, `"web_search_options":{}`, "web_search_options"},
		{[]Dialect{Chat}, `"modalities":["text","audio"]`, "modalities"},
		{[]Dialect{Chat}, `"audio":{"voice":"alloy"}`, "audio"},
		{[]Dialect{Responses}, `"prompt":{"id":"pmpt_1"}`, "prompt"},
		{[]Dialect{Responses}, `"conversation":"conv_1"`, "conversation"},
		{[]Dialect{Responses}, `"context_management":[{"type":"compaction"}]`, "context_management"},
		{[]Dialect{Messages}, `"container":{"skills":[{"skill_id":"xlsx"}]}`, "container"},
		{[]Dialect{Messages}, `"mcp_servers":[{"type":"url","url":"https://example.com"}]`, "mcp_servers"},
		{[]Dialect{Messages}, `"speed":"fast"`, "speed"},
		{[]Dialect{Messages}, `"compaction":{"x":1}`, "compaction"},
		{[]Dialect{Messages}, `"context_management":{"edits":[{"type":"compact_20260112"}]}`, "context_management.edits: compact_20260112"},
	} {
		for _, d := range c.in {
			r, body := parse(t, d, c.field+`,"temperature":1`)
			if !slices.Contains(r.Dropped, c.dropped) || len(r.Dropped) != 1 {
				t.Errorf("%s %s: dropped are %q, not %q", d.Path(), c.field, r.Dropped, c.dropped)
			}
			if !strings.Contains(body, `"temperature":1`) {
				t.Errorf("%s %s: the rest does not go on: %s", d.Path(), c.field, body)
			}
			name := strings.Split(c.field, `"`)[1]
			if name != "thinking" && strings.Contains(body, `"`+name+`"`) {
				t.Errorf("%s %s: the provider gets %s", d.Path(), c.field, body)
			}
		}
	}
}

// Tools that run at the provider are taken out, with a choice of them; the
// client's own stay as they are.
func TestToolsAtTheProviderAreDropped(t *testing.T) {
	for _, c := range []struct {
		d       Dialect
		tools   string // with the rest of the request
		want    string
		dropped string
	}{
		{Chat, `[{"type":"function","function":{"name":"a"}},{"type":"web_search_preview"}],"tool_choice":"auto"`,
			`"tools":[{"function":{"name":"a"},"type":"function"}],"tool_choice":"auto"`, "tools: web_search_preview"},
		{Chat, `[{"type":"openrouter:web_search"}],"tool_choice":"auto","parallel_tool_calls":true`, "", "tools: openrouter:web_search"},
		{Chat, `[{"type":"function","Type":"web_search","function":{"name":"a"}}]`, `"tools":[{"function":{"name":"a"},"type":"function"}]`, ""},
		{Chat, `[{"type":"function","type":"web_search"}]`, "", "tools: web_search"},
		{Chat, `["web_search"]`, "", "tools"},
		{Chat, `[{"google_search":{}},{"url_context":{},"code_execution":{}},{"Name":"x"}]`, "", "tools: google_search, tools: code_execution url_context, tools: Name"},
		{Chat, `[{"type":"function","function":{"name":"a"},"google_search":{},"cache_control":{"type":"ephemeral"}}]`,
			`"tools":[{"cache_control":{"type":"ephemeral"},"function":{"name":"a"},"type":"function"}]`, "tools.google_search"},
		{Chat, `[{"function":{"name":"a"}},{"name":"b"}]`, `"tools":[{"function":{"name":"a"}},{"name":"b"}]`, ""},
		{Messages, `[{"google_search":{}}]`, "", "tools: google_search"},
		{Responses, `[{"web_search":{}},{"type":"","name":"a"}]`, `"tools":[{"name":"a","type":""}]`, "tools: web_search"},
		{Responses, `[{"type":"web_search","external_web_access":false},{"type":"custom","name":"apply_patch","format":{"type":"grammar"}}]`,
			`"tools":[{"format":{"type":"grammar"},"name":"apply_patch","type":"custom"}]`, "tools: web_search"},
		{Responses, `[{"type":"function","name":"a"},{"type":"code_interpreter","container":{"type":"auto"}}],"tool_choice":{"type":"code_interpreter"}`,
			`"tools":[{"name":"a","type":"function"}]`, "tools: code_interpreter"},
		{Responses, `[{"type":"function","name":"a"},{"type":"mcp","server_url":"https://example.com"}],"tool_choice":{"type":"function","name":"a"}`,
			`"tools":[{"name":"a","type":"function"}],"tool_choice":{"type":"function","name":"a"}`, "tools: mcp"},
		{Responses, `[{"type":"file_search"},{"type":"image_generation"},{"type":"shell","environment":{"type":"container_auto"}}]`, "", "tools: file_search, tools: image_generation, tools: shell"},
		{Responses, `[{"type":"shell","environment":{"type":"local"}},{"type":"local_shell"},{"type":"tool_search"}]`,
			`"tools":[{"environment":{"type":"local"},"type":"shell"},{"type":"local_shell"},{"type":"tool_search"}]`, ""},
		{Responses, `[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"},{"type":"web_search"}]}]`,
			`"tools":[{"name":"n","tools":[{"name":"a","type":"function"}],"type":"namespace"}]`, "tools: web_search"},
		{Responses, `[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}],"tool_choice":"required"`, "", "tools: web_search"},
		{Messages, `[{"name":"a","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`,
			`"tools":[{"input_schema":{"type":"object"},"name":"a"}]`, "tools: web_search_20250305"},
		{Messages, `[{"type":"web_fetch_20260209","name":"f"},{"type":"code_execution_20250825","name":"c"},{"type":"mcp_toolset"},{"type":"advisor_20260301"}]`,
			"", "tools: web_fetch_20260209, tools: code_execution_20250825, tools: mcp_toolset, tools: advisor_20260301"},
		{Messages, `[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"},{"type":"memory_20250818","name":"memory"},{"type":"tool_search_tool_bm25","name":"s"},{"type":"custom","name":"a"}]`,
			`"tools":[{"name":"bash","type":"bash_20250124"},{"name":"e","type":"text_editor_20250728"},{"name":"memory","type":"memory_20250818"},{"name":"s","type":"tool_search_tool_bm25"},{"name":"a","type":"custom"}]`, ""},
		{Messages, `[{"type":"bash_code_execution_20250825"}]`, "", "tools: bash_code_execution_20250825"},
	} {
		r, body := parse(t, c.d, `"tools":`+c.tools)
		want := "{}"
		if c.want != "" {
			want = "{" + c.want + "}"
		}
		if got := strings.ReplaceAll(strings.ReplaceAll(body, "{,", "{"), ",,", ","); got != want || strings.Join(r.Dropped, ", ") != c.dropped {
			t.Errorf("%s %s:\n%s\nwant %s; dropped %q", c.d.Path(), c.tools, got, want, r.Dropped)
		}
	}
}

// What the agents' real clients send goes on, all of it.
func TestFieldsOfRealClientsGoOn(t *testing.T) {
	for d, fields := range map[Dialect]string{
		Messages: `"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"max_tokens":32000,"metadata":{"user_id":"u"},
			"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"medium"},"stream":true,
			"thinking":{"type":"enabled","budget_tokens":31999},"temperature":1,"stop_sequences":["x"],"tool_choice":{"type":"auto"},"tools":[{"name":"Bash","input_schema":{}}]`,
		Responses: `"instructions":"x","input":[{"role":"user","content":"hi"}],"tools":[{"type":"function","name":"exec_command","strict":false,"parameters":{}}],"tool_choice":"auto",
			"parallel_tool_calls":true,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],
			"prompt_cache_key":"k","text":{"verbosity":"low"},"client_metadata":{"x":"y"},"service_tier":"flex"`,
		Chat: `"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true},
			"max_tokens":8192,"temperature":0,"top_p":1,"reasoning_effort":"low","n":1,"seed":7,"response_format":{"type":"json_object"},"user":"u","prompt_cache_key":"k"`,
	} {
		r, body := parse(t, d, fields)
		if len(r.Dropped) > 0 {
			t.Errorf("%s: dropped are %q", d.Path(), r.Dropped)
		}
		want, err := decodeJSON([]byte(`{"model":"m",` + fields + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeJSON([]byte(strings.Replace(body, "{,", `{"model":"m",`, 1)))
		if err != nil || string(writeJSON(got)) != string(writeJSON(want)) {
			t.Errorf("%s: the provider gets\n%s\nof\n%s (%v)", d.Path(), writeJSON(got), writeJSON(want), err)
		}
	}
}

// The fields of one request of each program, as they were seen at a fake provider: nothing
// but what Anthropic or OpenAI would run themselves is lost. Of fields whose values are long,
// the first of a kind stands for all.
func TestFieldsOfRealProgramsGoOn(t *testing.T) {
	for program, c := range map[string]struct {
		d               Dialect
		fields, dropped string
	}{
		"claude 2.1.330": {Messages, `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"system","content":[{"type":"text","text":"# Environment","cache_control":{"type":"ephemeral"}}]}],
			"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.03d; cc_entrypoint=sdk-cli;"},{"type":"text","text":"You are","cache_control":{"type":"ephemeral"}}],
			"tools":[{"name":"Bash","description":"d","input_schema":{"type":"object"}},{"name":"DeferredToolPlaceholder","description":"d","input_schema":{"type":"object"},"defer_loading":true}],
			"metadata":{"user_id":"{}"},"max_tokens":32000,"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
			"output_config":{"effort":"high"},"stream":true`, ""},
		"codex 0.169": {Responses, `"stream":true,"input":[{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"You are"}]}],
			"tools":[{"type":"function","name":"exec_command","description":"d","strict":false,"parameters":{"type":"object"}},
			{"type":"namespace","name":"multi_agent_v1","description":"d","tools":[{"type":"function","name":"spawn_agent","parameters":{"type":"object"}}]},{"type":"web_search","external_web_access":false}],
			"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"summary":"auto"},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"thread_id":"t"}`, "tools: web_search"},
		"copilot 1.0.102": {Chat, `"messages":[{"role":"system","content":"You are"}],"temperature":0,"top_p":0.95,"frequency_penalty":0,"presence_penalty":0,
			"tools":[{"type":"function","function":{"name":"bash","description":"d","parameters":{"type":"object"}}}],"stream":true,"stream_options":{"include_usage":true}`, ""},
		"qwen 0.24.4": {Chat, `"messages":[{"role":"system","content":"You are"}],"max_tokens":32000,"stream":true,"stream_options":{"include_usage":true},
			"tools":[{"type":"function","function":{"name":"a","description":"d","parameters":{}}},{"type":"function","function":{"name":"b","description":"d"}}]`, ""},
		"gemini 0.61.0": {Gemini, `"contents":[{"parts":[{"text":"hi"}],"role":"user"},{"parts":[{"functionCall":{"id":"1","args":{},"name":"a"},"thoughtSignature":"skip_thought_signature_validator"}],"role":"model"}],
			"systemInstruction":{"parts":[{"text":"You are"}],"role":"user"},"tools":[{"functionDeclarations":[{"name":"a","description":"d","parametersJsonSchema":{"type":"object"}}]}],
			"generationConfig":{"temperature":1,"topP":0.95,"topK":64,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}}`, ""},
	} {
		body := []byte("{" + c.fields + "}")
		var r *Request
		var err error
		if c.d == Gemini {
			r, err = ParseGemini(GeminiPath{Model: "m"}, body)
		} else {
			r, err = ParseRequest(c.d, []byte(`{"model":"m",`+c.fields+"}"))
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := decodeJSON(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeJSON(r.Body("m", false))
		if err != nil {
			t.Fatal(err)
		}
		delete(asObject(got), "model")
		if c.dropped != "" { // it stands last
			tools := asList(asObject(want)["tools"])
			asObject(want)["tools"] = tools[:len(tools)-1]
		}
		if strings.Join(r.Dropped, ", ") != c.dropped || string(writeJSON(got)) != string(writeJSON(want)) {
			t.Errorf("%s: dropped are %q; the provider gets\n%s\nof\n%s", program, r.Dropped, writeJSON(got), writeJSON(want))
		}
	}
}

// What says nothing is not told of, and names are told so that they can be shown.
func TestDroppedNames(t *testing.T) {
	r, _ := parse(t, Chat, `"audio":null,"background":false,"a":"","b":[]`)
	if len(r.Dropped) != 0 {
		t.Errorf("told are %q", r.Dropped)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `"%03d":1,`, i)
	}
	r, _ = parse(t, Chat, `"\u001b[31m\u202e\n":1,"`+strings.Repeat("x", 1000)+`":1,`+strings.TrimSuffix(many.String(), ","))
	if len(r.Dropped) != maxDropped {
		t.Errorf("%d are told", len(r.Dropped))
	}
	if r.Dropped[0] != `\x1b[31m\u202e\n` {
		t.Errorf("%q is told", r.Dropped[0])
	}
	r, _ = parse(t, Chat, `"`+strings.Repeat("x", 1000)+`":1`)
	if len(r.Dropped) != 1 || len(r.Dropped[0]) > maxName {
		t.Errorf("%q are told", r.Dropped)
	}
}

// How much an answer may be is read as the provider reads it.
func TestOutputOfRequests(t *testing.T) {
	for _, c := range []struct {
		d       Dialect
		fields  string
		most, n int
	}{
		{Chat, `"max_tokens":5`, 5, 1},
		{Chat, `"max_tokens":1e3,"n":2.0`, 1000, 2},
		{Chat, `"max_tokens":5,"max_completion_tokens":7`, 7, 1},
		{Chat, `"max_tokens":5,"thinking_budget":100`, 105, 1},
		{Chat, `"max_tokens":5,"reasoning":{"max_tokens":20},"thinking":{"budget_tokens":300}`, 325, 1},
		{Chat, `"thinking_budget":100`, 0, 1},
		{Messages, `"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":31999}`, 32000, 1},
		{Messages, `"max_tokens":1000,"thinking":{"type":"enabled","budget_tokens":31999}`, 31999, 1},
		{Responses, `"max_output_tokens":9`, 9, 1},
		{Chat, `"n":0`, 0, 1},
	} {
		if r, body := parse(t, c.d, c.fields); r.MaxOutput != c.most || r.Choices != c.n || strings.Contains(body, "e3") {
			t.Errorf("%s: %d tokens, %d answers; the provider gets %s", c.fields, r.MaxOutput, r.Choices, body)
		}
	}
}

// A request that has the model read what is not in it is known by that.
func TestOutsideOfRequests(t *testing.T) {
	for fields, want := range map[string]bool{
		`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`:                                    true,
		`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]`:                                   false,
		`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]}]`:                           true,
		`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"see: https"}}]}]`:                                        false,
		`"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"file","file_id":"f1"}}]}]}]`:             true,
		`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"fetch_url","input":{"type":"image","url":"https://a.example"}}]}]`: false,
		`"messages":[{"role":"user","content":"https://example.com"}]`:                                                                                     false,
		`"input":[{"type":"item_reference","id":"x"}]`:                                                                                                     true,
		`"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://a.example"}]}]`:                                                       true,
		`"input":[{"type":"function_call_output","output":[{"type":"input_image","file_id":"x"}]}]`:                                                        true,
		`"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"https://a.example"}}]`:                                true,
		`"messages":[{"role":"user","content":[{"type":"audio_url","audio_url":{"url":"https://a.example"}}]}]`:                                            true,
		`"messages":[{"content":[{"image_url":{"url":"https:\/\/a.example"},"\u0074ype":"image\u005furl"}]}]`:                                              true,
		`"messages":[{"content":[{"content":[{"type":"image","x":"a://b"}],"type":"text"}]}]`:                                                              true,
		`"messages":[{"content":"a"},[{"content":{"type":"file","text":"a://b"}}]]`:                                                                        false,
		`"previous_response_id":"resp_1"`: true,
		`"previous_response_id":null`:     false,
	} {
		d := Messages
		if !strings.HasPrefix(fields, `"messages"`) {
			d = Responses
		}
		if r, _ := parse(t, d, fields); r.Outside != want {
			t.Errorf("%s: %v", fields, r.Outside)
		}
	}
}

// Requests whose parts would take far more memory than their size are refused.
func TestLargeRequestsAreRefused(t *testing.T) {
	many := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for name, c := range map[string]struct{ fields, says string }{
		"nested":        {`"messages":` + strings.Repeat("[", 200), "nested more than 128 levels deep"},
		"nested, whole": {`"messages":` + strings.Repeat(`{"a":[`, 100) + strings.Repeat("]}", 100), "nested more than 128 levels deep"},
		"values":        {`"messages":[` + many("0", 300_000) + `]`, "more than 250000 JSON values"},
		"empty values":  {`"messages":[{"content":[` + many("{}", 200_000) + `]}]`, "more than 250000 JSON values"},
		"fields":        {many(`"a":1`, 300_000), "more than 250000 JSON values"},
		"messages":      {`"messages":[` + many(`{}`, maxMessages+1) + `]`, `"messages" has 10001 entries, more than 10000`},
		"a million":     {`"messages":[` + many(`{}`, 1_000_000) + `]`, "more than 250000 JSON values"},
		"items":         {`"input":[` + many(`{}`, maxMessages+1) + `]`, `"input" has 10001 entries`},
		"tools":         {`"tools":[` + many(`{}`, maxMessages+1) + `]`, `"tools" has 10001 entries`},
	} {
		if _, err := ParseRequest(Chat, []byte(`{"model":"m",`+c.fields+`}`)); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	text := strings.Repeat(`[{,\"`, 300_000)
	for _, fields := range []string{`"messages":[{"role":"user","content":"` + text + `"}]`, `"messages":[` + many(`{"role":"user","content":"hi"}`, maxMessages) + `]`} {
		if _, err := ParseRequest(Chat, []byte(`{"model":"m",`+fields+`}`)); err != nil {
			t.Errorf("%.60s: %v", fields, err)
		}
	}
}

// FuzzRequest: of whatever is sent, a provider gets a JSON object of known fields, with
// the model that it is to be, and as many answers and tokens as were counted on.
func FuzzRequest(f *testing.F) {
	for _, body := range conversation {
		f.Add(0, []byte(body))
	}
	f.Add(1, []byte(`{"model":"m","tools":[{"type":"namespace","tools":[{"type":"mcp"}]},7,null],"tool_choice":{"type":"mcp"},"reasoning":{"max_tokens":1e9}}`))
	f.Add(2, []byte(`{"model":"m","n":1e99,"max_tokens":"9","thinking":[],"Model":"x","service_tier":"priority","context_management":{"edits":[{"type":"clear_x"},{"type":"y"}]}}`))
	f.Fuzz(func(t *testing.T, in int, body []byte) {
		d := []Dialect{Chat, Responses, Messages}[uint(in)%3]
		r, err := ParseRequest(d, body)
		if err != nil {
			return
		}
		sent := r.Body("real", true)
		again, err := ParseRequest(d, sent)
		if err != nil || again.Model != "real" || len(again.Dropped) > 0 {
			t.Fatalf("%s\nbecomes %s: %v, dropped %q", body, sent, err, again.Dropped)
		}
		if again.MaxOutput != r.MaxOutput || again.Choices != r.Choices || r.Choices > MaxChoices || again.Stream != r.Stream || again.Outside != r.Outside {
			t.Fatalf("%s\nbecomes %s: %+v, %+v", body, sent, r, again)
		}
		if len(r.Dropped) > maxDropped {
			t.Fatalf("%d fields are told", len(r.Dropped))
		}
	})
}
