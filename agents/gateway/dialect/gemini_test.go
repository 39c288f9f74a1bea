package dialect

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// parseGoogle reads a request of these fields, and gives what the provider gets.
func parseGoogle(t *testing.T, fields string) (*Request, string) {
	t.Helper()
	r, err := ParseGemini(GeminiPath{Model: "m"}, []byte("{"+fields+"}"))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return r, string(r.Body("other", true))
}

func TestGeminiConversation(t *testing.T) {
	want, err := ParseRequest(Chat, []byte(conversation[Chat]))
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"systemInstruction", "system_instruction"} {
		got, err := ParseGemini(GeminiPath{Model: "m", Stream: true}, []byte(`{"`+system+`":{"parts":[{"text":"be kind"}]},
		"generationConfig":{"maxOutputTokens":7},"tools":[{"functionDeclarations":[{"name":"b"}]},{"functionDeclarations":[{"name":"a"}]}],
		"contents":[{"role":"user","parts":[{"text":"hi"}]},
		{"role":"model","parts":[{"text":"hm","thought":true},{"text":"let me see","thoughtSignature":"x"},{"functionCall":{"name":"a","args":{"p":1}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		want.ReadMessages()
		got.ReadMessages()
		// Google's tools answer with objects.
		want.Messages[3].Text = `{"output":"one"}`
		got.Messages[2].Calls[0].ID = want.Messages[2].Calls[0].ID
		if string(writeJSON(got.Messages)) != string(writeJSON(want.Messages)) || !slices.Equal(got.Tools, want.Tools) || got.MaxOutput != 7 || !got.Stream {
			t.Errorf("%s instead of %s; %q", writeJSON(got.Messages), writeJSON(want.Messages), got.Tools)
		}
	}
}

// What Google has a price for besides tokens does not reach it, and is told.
func TestGeminiFieldsThatCostAreDropped(t *testing.T) {
	for field, dropped := range map[string]string{
		`"cachedContent":"cachedContents/1"`:                                      "cachedContent",
		`"cached_content":"cachedContents/1"`:                                     "cachedContent",
		`"surprise":1`:                                                            "surprise",
		`"serviceTier":"priority"`:                                                "serviceTier",
		`"tools":[{"googleSearch":{}}]`:                                           "tools: googleSearch",
		`"tools":[{"google_search":{}}]`:                                          "tools: googleSearch",
		`"tools":[{"codeExecution":{}}]`:                                          "tools: codeExecution",
		`"tools":[{"urlContext":{}},{"functionDeclarations":[{"name":"a"}]}]`:     "tools: urlContext",
		`"tools":[{"functionDeclarations":[{"name":"a"}],"googleMaps":{}}]`:       "tools: googleMaps",
		`"tools":{"googleSearch":{}}`:                                             "tools",
		`"toolConfig":{"retrievalConfig":{"languageCode":"en"}}`:                  "toolConfig.retrievalConfig",
		`"generationConfig":{"responseModalities":["TEXT","IMAGE"]}`:              "generationConfig.responseModalities",
		`"generationConfig":{"response_modalities":["AUDIO"]}`:                    "generationConfig.responseModalities",
		`"generationConfig":{"speechConfig":{"voiceConfig":{}}}`:                  "generationConfig.speechConfig",
		`"generationConfig":{"candidateCount":9}`:                                 "generationConfig.candidateCount",
		`"generationConfig":{"maxOutputTokens":"9"}`:                              "generationConfig.maxOutputTokens",
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":-2}}`:             "generationConfig.thinkingConfig.thinkingBudget",
		`"generationConfig":["x"]`:                                                "generationConfig",
		`"generationConfig":{"maxOutputTokens":5,"enableEnhancedCivicAnswers":1}`: "generationConfig.enableEnhancedCivicAnswers",
	} {
		r, body := parseGoogle(t, field+`,"contents":[{"parts":[{"text":"hi"}]}]`)
		if !slices.Equal(r.Dropped, []string{dropped}) || !strings.Contains(body, `"hi"`) {
			t.Errorf("%s: dropped are %q of %s", field, r.Dropped, body)
		}
		if name := dropped[strings.LastIndexAny(dropped, " .")+1:]; strings.Contains(body, name) && name != "tools" && name != "generationConfig" {
			t.Errorf("%s: Google gets %s", field, body)
		}
	}
}

// A choice among tools that are not there any more goes with them.
func TestGeminiToolChoiceGoesWithItsTools(t *testing.T) {
	const choice = `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},`
	if _, body := parseGoogle(t, choice+`"tools":[{"googleSearch":{}}]`); body != "{}" {
		t.Errorf("Google gets %s", body)
	}
	if _, body := parseGoogle(t, choice+`"tools":[{"googleSearch":{},"functionDeclarations":[{"name":"a"}]}]`); body !=
		`{"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"tools":[{"functionDeclarations":[{"name":"a"}]}]}` {
		t.Errorf("Google gets %s", body)
	}
}

func TestGeminiOptions(t *testing.T) {
	for fields, want := range map[string]Request{
		`"generationConfig":{"candidateCount":3,"max_output_tokens":100}`:                                 {Choices: 3, MaxOutput: 100},
		`"generationConfig":{"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":500}}`:              {Choices: 1, MaxOutput: 500},
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}`:                                     {Choices: 1},
		`"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/x.mp4"}}]}]`:                   {Choices: 1, Outside: true},
		`"contents":[{"parts":[{"functionResponse":{"response":{}}},{"file_data":{"file_uri":"x"}}]}]`:    {Choices: 1, Outside: true},
		`"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},{"text":"a"}]}]`: {Choices: 1},
	} {
		r, _ := parseGoogle(t, fields)
		if r.Choices != want.Choices || r.MaxOutput != want.MaxOutput || r.Outside != want.Outside || len(r.Dropped) > 0 {
			t.Errorf("%s: %d, %d, %v, %q", fields, r.Choices, r.MaxOutput, r.Outside, r.Dropped)
		}
	}
}

func TestGeminiEndpoints(t *testing.T) {
	for path, want := range map[string]string{
		"/v1beta/models/a:generateContent":           "/v1beta/models/gemini-3:generateContent",
		"/v1/models/models/a:streamGenerateContent":  "/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
		"/v1beta/models/x/y:countTokens":             "/v1beta/models/gemini-3:countTokens",
		"/v1beta/models/a?key=b/../:generateContent": "/v1beta/models/gemini-3:generateContent",
	} {
		g, ok := ParseGeminiPath(path)
		r, err := ParseGemini(g, []byte(`{"model":"ignored"}`))
		if !ok || err != nil || r.Endpoint("models/gemini-3") != want {
			t.Errorf("%s leads to %q, %v", path, r.Endpoint("gemini-3"), err)
		}
	}
	if got := (GeminiPath{}).Endpoint("a/../b?key=c#d"); got != "/v1beta/models/a%2F..%2Fb%3Fkey=c%23d:generateContent" {
		t.Errorf("a model's name leaves its place: %s", got)
	}
}

// countTokens may have its request in another, which is read alike.
func TestGeminiCountTokens(t *testing.T) {
	for _, body := range []string{`{"contents":[{"parts":[{"text":"hi"}]}]}`,
		`{"generateContentRequest":{"model":"models/a","cachedContent":"x","contents":[{"parts":[{"text":"hi"}]}]}}`} {
		r, err := ParseGemini(GeminiPath{Model: "a", Count: true}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeJSON(r.Body("b", false))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(writeJSON(got)); got != `{"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}],"model":"models/b"}}` {
			t.Errorf("%s becomes %s", body, got)
		}
	}
	if _, err := ParseGemini(GeminiPath{Model: "a", Count: true}, []byte(`{"generateContentRequest":[]}`)); err == nil {
		t.Error("a list is a request")
	}
}

func TestGeminiAnswers(t *testing.T) {
	for body, want := range map[string]Answer{
		`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"text":"b"}]},"finishReason":"STOP"}],
			"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":5,"toolUsePromptTokenCount":2}}`: {Text: "ab", Finish: FinishStop, Bytes: 4,
			Usage: Usage{In: 12, CacheRead: 4, Out: 8, Reasoning: 5, HasIn: true, HasOut: true}},
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"p":1}}},{"functionCall":{"name":"b"}}]},"finishReason":"STOP"}]}`: {Finish: FinishCalls, Bytes: 2,
			Calls: []Call{{Name: "a", Args: `{"p":1}`}, {Name: "b", Args: "{}"}}},
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                                              {Finish: FinishFilter},
		`{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}`:                                   {Finish: FinishFilter},
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}`:        {Text: "a", Bytes: 1, Finish: FinishLength},
		`{"candidates":[{"content":{"parts":[]},"finishReason":"MALFORMED_FUNCTION_CALL"}]}`:       {Finish: "MALFORMED_FUNCTION_CALL"},
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"other"}]}}],"usageMetadata":null}`: {Bytes: 5},
	} {
		got, err := ParseAnswer(Gemini, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v instead of %+v", body, got, want)
		}
	}
	_, err := ParseAnswer(Gemini, []byte(`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`))
	var e *StreamError
	if !errors.As(err, &e) || e.Code != "429" || !e.Temporary() {
		t.Errorf("%v", err)
	}
}

// A stream is over when each of its candidates is.
func TestGeminiStreamsEnd(t *testing.T) {
	c := NewCollector(Gemini)
	for _, ev := range []struct {
		data string
		done bool
	}{
		{`{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"x"}]}}]}`, false},
		{`{"candidates":[{"index":1,"finishReason":"STOP"}]}`, false},
		{`{"candidates":[{"index":0,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`, true},
		{`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`, true},
	} {
		c.Add(Event{Data: []byte(ev.data)})
		if c.Done() != ev.done || c.Ended() {
			t.Errorf("after %s: %v", ev.data, c.Done())
		}
	}
	if a := c.AnswerSoFar(); a.Text != "ab" || a.Usage.Out != 2 {
		t.Errorf("%+v", a)
	}
}
