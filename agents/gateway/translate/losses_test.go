package translate

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

var update = flag.Bool("update", false, "write docs/translation.md anew")

// read reads a client's request of these fields, beside one message.
func read(t testing.TB, d dialect.Dialect, fields string) *dialect.Request {
	t.Helper()
	var r *dialect.Request
	var err error
	body := []byte(strings.TrimSuffix("{"+said(d)+","+fields, ",") + "}")
	if d == dialect.Gemini {
		r, err = dialect.ParseGemini(dialect.GeminiPath{Model: "m", Stream: true}, body)
	} else {
		r, err = dialect.ParseRequest(d, body)
	}
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return r
}

func said(d dialect.Dialect) string {
	return map[dialect.Dialect]string{
		dialect.Messages: `"model":"m","messages":[{"role":"user","content":"hi"}]`, dialect.Responses: `"model":"m","input":"hi"`,
		dialect.Gemini: `"contents":[{"parts":[{"text":"hi"}]}]`, dialect.Chat: `"model":"m","messages":[{"role":"user","content":"hi"}]`,
	}[d]
}

// Each line of the table is what really happens: an example of it is lost, or refused.
func TestEachLossIsOne(t *testing.T) {
	examples := map[dialect.Dialect]map[string]string{
		dialect.Messages: {
			"what the model thought before":             `"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]}]`,
			"images and files":                          `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]}]`,
			"how much the model is to think":            `"thinking":{"type":"enabled","budget_tokens":5000}`,
			"top_k":                                     `"top_k":5`,
			"more than four stop sequences":             `"stop_sequences":["a","b","c","d","e"]`,
			"log probabilities":                         `"top_logprobs":5`,
			"cache_control of the whole request":        `"cache_control":{"type":"ephemeral"}`,
			"output_config.task_budget":                 `"output_config":{"task_budget":{"type":"tokens","total":1000}}`,
			"context_management":                        `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}`,
			"tools that only one provider knows":        `"tools":[{"type":"bash_20250124","name":"bash"}]`,
			"a forced tool that the model does not get": `"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`,
		},
		dialect.Responses: {
			"what the model thought before":                            `"input":[{"type":"reasoning","summary":[],"encrypted_content":"x"},{"role":"user","content":"hi"}]`,
			"images and files":                                         `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,eA=="}]}]`,
			"tools that only one provider knows":                       `"tools":[{"type":"local_shell"}]`,
			"items that only one provider knows":                       `"input":[{"type":"local_shell_call","call_id":"c","action":{}},{"role":"user","content":"hi"}]`,
			"how much the model is to think":                           `"reasoning":{"max_tokens":100}`,
			"top_k":                                                    `"top_k":5`,
			"log probabilities":                                        `"top_logprobs":5`,
			"cache_control of the whole request":                       `"cache_control":{"type":"ephemeral"}`,
			"max_tool_calls":                                           `"max_tool_calls":3`,
			"truncation":                                               `"truncation":"auto"`,
			"a choice among some of the tools":                         `"tools":[{"type":"function","name":"a"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"}]}`,
			"a forced tool that the model does not get":                `"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`,
			"previous_response_id of an answer that is no longer kept": `"previous_response_id":"resp_1"`,
			"item_reference of an answer that is no longer kept":       `"input":[{"type":"item_reference","id":"msg_1"}]`,
		},
		dialect.Gemini: {
			"what the model thought before":             `"contents":[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a"}]}]`,
			"images and files":                          `"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}]`,
			"how much the model is to think":            `"generationConfig":{"thinkingConfig":{"thinkingBudget":8192}}`,
			"top_k":                                     `"generationConfig":{"topK":64}`,
			"log probabilities":                         `"generationConfig":{"responseLogprobs":true}`,
			"more than four stop sequences":             `"generationConfig":{"stopSequences":["a","b","c","d","e"]}`,
			"a choice among some of the tools":          `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["a","b"]}},"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"},{"name":"c"}]}]`,
			"safetySettings":                            `"safetySettings":[{"category":"HARM_CATEGORY_HATE_SPEECH","threshold":"BLOCK_NONE"}]`,
			"more than one candidate":                   `"generationConfig":{"candidateCount":2}`,
			"a forced tool that the model does not get": `"tools":[{"functionDeclarations":[{"name":"a"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["b"]}}`,
		},
	}
	for d, of := range examples {
		for _, l := range Losses(d) {
			example, ok := of[l.What]
			if !ok {
				t.Errorf("%s: no example of %q", d.Name(), l.What)
				continue
			}
			delete(of, l.What)
			body := "{" + example + "}"
			if !strings.Contains(example, `"messages"`) && !strings.Contains(example, `"input"`) && !strings.Contains(example, `"contents"`) {
				body = "{" + said(d) + "," + example + "}"
			}
			body = strings.Replace(body, "{", `{"model":"m",`, 1)
			if strings.Count(body, `"model":"m"`) > 1 {
				body = strings.Replace(body, `"model":"m",`, "", 1)
			}
			var r *dialect.Request
			var err error
			if d == dialect.Gemini {
				r, err = dialect.ParseGemini(dialect.GeminiPath{Model: "m"}, []byte(body))
			} else {
				r, err = dialect.ParseRequest(d, []byte(body))
			}
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			tr, err := NewTranslation(r, Options{})
			if l.Refused != errors.Is(err, ErrRequest) || !l.Refused && err != nil {
				t.Errorf("%s: %s: %v", d.Name(), body, err)
			}
			if !l.Refused && err == nil && !slices.ContainsFunc(tr.Lost, func(lost string) bool { return strings.HasPrefix(lost, l.What) }) {
				t.Errorf("%s: %s loses %q, not %q", d.Name(), body, tr.Lost, l.What)
			}
		}
		for what := range of {
			t.Errorf("%s: %q is in no line of the table", d.Name(), what)
		}
	}
	if len(Losses(dialect.Chat)) != 0 {
		t.Error("chat loses something to itself")
	}
}

// The page for people is made of the table.
func TestTranslationPage(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(`# What a program loses at a provider that speaks chat completions alone

Every program that uwf runs is answered by every provider: where the provider has the program's
own wire (` + "`providers.NAME.wires`" + ` in the settings), requests pass as they are; else the gateway
translates them into chat completions and the answers back. Budgets, metering, recording and
replay are the same; a cassette has what the program asked and got in its own dialect. Tokens are
counted by estimate where a program asks for a count. A refused or filtered answer never looks
like one that ended well, and a stream that was cut is an error.

A client that asks for thoughts gets what the provider calls ` + "`reasoning_content`" + `: by ` + "`thinking`" + `
(messages), ` + "`reasoning.summary`" + ` (responses) or ` + "`includeThoughts`" + ` (gemini). Otherwise thoughts are left
out, and so are those that come after the first text of a stream. Their tokens are in the usage of every wire.

If a model's tool arguments are no JSON object, chat and responses pass the text on. Clients of messages
and gemini take objects alone: they get the text in one field, ` + "`" + dialect.BrokenArgs + "`" + `.
A tool that checks its arguments refuses it, and the model reads what it wrote. The gateway does not ask
again: that costs as much as the first answer, and a streamed one has begun already.

Clients of the responses API may refer to former answers by ` + "`previous_response_id` and `item_reference`" + `.
The gateway keeps the answers of the step in its memory, the newest up to ` + "`gateway.maxBody`" + ` bytes, unless
the request says ` + "`store: false`" + `.

This table is written by a test out of the code; ` + "`uwf agent check`" + ` says the same lines.

| wire | what is lost | what becomes of it |
|---|---|---|
`)
	for _, d := range []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini} {
		for _, l := range Losses(d) {
			fmt.Fprintf(&page, "| %s | %s | %s |\n", d.Name(), l.What, l.Becomes)
		}
	}
	page.WriteString(`
Every other field is carried. Those of chat completions that not every server knows (` + "`" + strings.Join(optionalFields(), "`, `") + "`" + `)
are left out at a model whose provider refuses them by name, and the run says so. These fields mean
nothing to chat completions, and are left out without a word:

| wire | field | why |
|---|---|---|
`)
	for _, d := range []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini} {
		for _, field := range slices.Sorted(maps.Keys(meaningless[d])) {
			fmt.Fprintf(&page, "| %s | %s | %s |\n", d.Name(), field, meaningless[d][field])
		}
	}
	const file = "../../../docs/translation.md"
	if *update {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("%s is not the table (%v): write it with go test ./agents/gateway/translate -update", file, err)
	}
}
