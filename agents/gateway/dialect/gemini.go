package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// geminiFormat is that of Google's generateContent. Its model and whether the answer is
// streamed stand in the path, which is not compared: both are in a request's own fields.
func geminiFormat() format {
	return format{
		path: geminiPath, messages: geminiMessages, body: geminiBody, stream: newGeminiStream,
		answer: (*Collector).addGemini, event: func(c *Collector, _ string, o object) { c.addGemini(o) },
		ends: []end{
			{"STOP", FinishStop}, {"STOP", FinishCalls}, {"MAX_TOKENS", FinishLength}, {"SAFETY", FinishFilter},
			{"RECITATION", FinishFilter}, {"LANGUAGE", FinishFilter}, {"BLOCKLIST", FinishFilter}, {"PROHIBITED_CONTENT", FinishFilter},
			{"SPII", FinishFilter}, {"IMAGE_SAFETY", FinishFilter}, {"MODEL_ARMOR", FinishFilter},
		},
	}
}

// geminiPath stands for all paths of generateContent and streamGenerateContent.
const geminiPath = "/v1beta/models/{model}:generateContent"

// GeminiPath is what a path of Google's API asks for.
type GeminiPath struct {
	Model         string
	Stream, Count bool // streamGenerateContent, countTokens
}

// ParseGeminiPath reads "/v1beta/models/MODEL:generateContent" and its like; /v1 is read as
// /v1beta.
func ParseGeminiPath(path string) (g GeminiPath, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "/v1/models/")
	}
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 1 {
		return GeminiPath{}, false
	}
	g.Model = rest[:at]
	switch rest[at+1:] {
	case "generateContent":
	case "streamGenerateContent":
		g.Stream = true
	case "countTokens":
		g.Count = true
	default:
		return GeminiPath{}, false
	}
	return g, true
}

// Endpoint is the path for a model of that name, with the wish for server-sent events.
func (g GeminiPath) Endpoint(model string) string {
	deed := "generateContent"
	switch {
	case g.Stream:
		deed = "streamGenerateContent?alt=sse"
	case g.Count:
		deed = "countTokens"
	}
	return "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(model, "models/")) + ":" + deed
}

// ParseGemini reads a request in Google's dialect, whose path says which model is asked and
// how. What countTokens has in its generateContentRequest is read as the request.
func ParseGemini(g GeminiPath, body []byte) (*Request, error) {
	m, err := parseMembers(body)
	if err != nil {
		return nil, err
	}
	if inner := m.fields["generateContentRequest"]; g.Count && inner != nil {
		if m, err = parseMembers(inner); err != nil {
			return nil, fmt.Errorf("%w: \"generateContentRequest\" is no JSON object", ErrRequest)
		}
	}
	delete(m.fields, "model") // that of the path is meant
	r, err := newRequest(Gemini, g.Model, m)
	if err != nil {
		return nil, err
	}
	r.Stream, r.counts = g.Stream, g.Count
	return r, nil
}

// writeGeminiNames gives fields the names that the rules know: Google reads system_instruction
// as systemInstruction.
func writeGeminiNames(fields map[string]json.RawMessage) {
	for name, value := range fields {
		words := strings.Split(name, "_")
		if len(words) == 1 || words[0] == "" {
			continue
		}
		for i, w := range words[1:] {
			if w != "" {
				words[i+1] = strings.ToUpper(w[:1]) + w[1:]
			}
		}
		if camel := strings.Join(words, ""); fields[camel] == nil {
			delete(fields, name)
			fields[camel] = value
		}
	}
}

// geminiRules are the fields of Google's requests that cost nothing besides tokens. Left out
// are stored caches, which have a price by the hour, and answers that are no text.
func geminiRules() map[string]rule {
	config := map[string]rule{
		"candidateCount": wholeWithin(1, MaxChoices), "maxOutputTokens": wholeWithin(0, maxOutput), "responseModalities": textOnly,
		"thinkingConfig": geminiObject(map[string]rule{"includeThoughts": allowFlag, "thinkingBudget": wholeWithin(-1, maxOutput), "thinkingLevel": asIs}),
	}
	for _, name := range []string{"temperature", "topP", "topK", "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema",
		"presencePenalty", "frequencyPenalty", "seed", "responseLogprobs", "logprobs", "mediaResolution"} {
		config[name] = asIs
	}
	return map[string]rule{
		"contents": asIs, "systemInstruction": asIs, "safetySettings": asIs, "tools": geminiTools,
		"generationConfig": geminiObject(config),
		"toolConfig": geminiObject(map[string]rule{
			"functionCallingConfig": geminiObject(map[string]rule{"mode": asIs, "allowedFunctionNames": asIs})}),
	}
}

// geminiObject is objectOf for fields by either of their names.
func geminiObject(rules map[string]rule) rule {
	return func(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
		var fields map[string]json.RawMessage
		if text.DecodeJSON(raw, &fields) != nil || fields == nil {
			return nil, false
		}
		writeGeminiNames(fields)
		return objectOf(rules)(s, path, writeJSON(fields))
	}
}

// geminiTools keeps the functions that the client runs itself. Every other field of a tool
// (googleSearch, codeExecution, urlContext …) is one that runs at Google.
func geminiTools(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
	var tools []map[string]json.RawMessage
	if text.DecodeJSON(raw, &tools) != nil {
		return nil, false
	}
	kept := []map[string]json.RawMessage{}
	for _, tool := range tools {
		writeGeminiNames(tool)
		for name := range tool {
			if name != "functionDeclarations" {
				s.noteDropped(path + ": " + name)
				s.lost = append(s.lost, name)
			}
		}
		if functions := tool["functionDeclarations"]; functions != nil {
			kept = append(kept, map[string]json.RawMessage{"functionDeclarations": functions})
		}
	}
	return writeJSON(kept), len(kept) > 0 || len(tools) == 0
}

// geminiField is a field of a part, by either of its names.
func geminiField(part object, camel, snake string) any {
	if v, ok := part[camel]; ok {
		return v
	}
	return part[snake]
}

func geminiMessages(request object) []Message {
	var out []Message
	system := request["systemInstruction"]
	if s, plain := system.(string); plain {
		system = object{"parts": list{object{"text": s}}}
	}
	if m := readGeminiParts(asObject(system), "system"); len(m) > 0 && m[0].Text != "" {
		out = append(out, m...)
	}
	for _, v := range asList(request["contents"]) {
		content := asObject(v)
		role := cmp.Or(asString(content["role"]), "user")
		if role == "model" {
			role = "assistant"
		}
		out = append(out, readGeminiParts(content, role)...)
	}
	return out
}

// readGeminiParts is what stands in one content: a message for each tool's result, and one for
// the rest.
func readGeminiParts(content object, role string) []Message {
	var out []Message
	msg := Message{Role: role}
	var texts []string
	for _, v := range asList(content["parts"]) {
		part := asObject(v)
		call, result := geminiField(part, "functionCall", "function_call"), geminiField(part, "functionResponse", "function_response")
		thought, _ := part["thought"].(bool)
		said, isText := part["text"].(string)
		switch {
		case result != nil:
			out = append(out, Message{Role: "tool", Text: string(writeJSON(asObject(result)["response"]))})
		case call != nil:
			msg.Calls = append(msg.Calls, callOf(asObject(call), "args"))
		case thought:
		case isText:
			texts = append(texts, said)
		default:
			texts = append(texts, describePart(v))
		}
	}
	if msg.Text = strings.Join(texts, "\n"); msg.Text != "" || len(msg.Calls) > 0 {
		out = append(out, msg)
	}
	return out
}

// addGemini adds a plain answer, or an event, which has the same form and holds what is new.
func (c *Collector) addGemini(o object) {
	a := &c.answer
	if u := asObject(o["usageMetadata"]); u != nil {
		a.Usage = readGeminiUsage(u)
	}
	if reason := asString(asObject(o["promptFeedback"])["blockReason"]); reason != "" { // there are no candidates then
		a.Finish, c.done = FinishFilter, true
	}
	for n, v := range asList(o["candidates"]) {
		candidate := asObject(v)
		index := indexOf(candidate, n)
		c.choices[index] = true
		for _, p := range asList(asObject(candidate["content"])["parts"]) {
			part := asObject(p)
			a.Bytes += countText(part)
			if thought, _ := part["thought"].(bool); thought || index != 0 {
				continue
			}
			a.Text += asString(part["text"])
			if call := asObject(geminiField(part, "functionCall", "function_call")); call != nil {
				a.Calls = append(a.Calls, callOf(call, "args"))
			}
		}
		if reason := asString(candidate["finishReason"]); reason != "" {
			delete(c.choices, index)
			c.done = len(c.choices) == 0
			if index == 0 {
				a.Finish = c.format.readEnd(reason)
			}
		}
	}
	if a.Finish == FinishStop && len(a.Calls) > 0 { // Google says STOP for both
		a.Finish = FinishCalls
	}
}

// readGeminiUsage reads a report. Thoughts are not among the candidates' tokens there.
func readGeminiUsage(u object) Usage {
	var usage Usage
	usage.In, usage.HasIn = parseCount(asNumber(u["promptTokenCount"]))
	if tools, ok := parseCount(asNumber(u["toolUsePromptTokenCount"])); ok {
		usage.In += tools
	}
	usage.CacheRead, _ = parseCount(asNumber(u["cachedContentTokenCount"]))
	said, hasSaid := parseCount(asNumber(u["candidatesTokenCount"]))
	thought, hasThought := parseCount(asNumber(u["thoughtsTokenCount"]))
	usage.Out, usage.HasOut = said+thought, hasSaid || hasThought
	usage.Reasoning = thought
	return usage
}

func geminiParts(r Reply) list {
	parts := list{}
	if r.Thoughts != "" {
		parts = append(parts, object{"text": r.Thoughts, "thought": true})
	}
	if r.Text != "" {
		parts = append(parts, object{"text": r.Text})
	}
	for _, c := range r.Calls {
		parts = append(parts, object{"functionCall": object{"id": c.ID, "name": c.Name, "args": c.Args.toObject()}})
	}
	return parts
}

func geminiBody(r Reply) object {
	return object{"candidates": list{object{"index": 0, "finishReason": geminiFormat().writeEnd(r.Finish),
		"content": object{"role": "model", "parts": geminiParts(r)}}},
		"usageMetadata": object{"promptTokenCount": r.Usage.In, "cachedContentTokenCount": r.Usage.CacheRead,
			"candidatesTokenCount": r.Usage.Out - r.Usage.Reasoning, "thoughtsTokenCount": r.Usage.Reasoning, "totalTokenCount": r.Usage.In + r.Usage.Out},
		"modelVersion": r.Model, "responseId": r.ID}
}

// geminiStatus is Google's word for errors of a status: google.rpc.Code.
func geminiStatus(status int) string {
	words := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		409: "ABORTED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
	if word := words[status]; word != "" {
		return word
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// geminiError is an error as Google writes it, with the gateway's code as its reason.
func geminiError(status int, code, message string) object {
	return object{"error": object{"code": status, "message": message, "status": geminiStatus(status), "details": list{
		object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "uwf"}}}}
}

// readGeminiOptions reads how long an answer of a request may be, and how many there are. Thoughts
// are a part of maxOutputTokens.
func (r *Request) readGeminiOptions() {
	config := r.readObject("generationConfig")
	r.MaxOutput = max(intOf(config["maxOutputTokens"]), intOf(asObject(config["thinkingConfig"])["thinkingBudget"]))
	r.Choices = max(1, intOf(config["candidateCount"]))
}

// geminiToolNames are the names of a request's functions, and of what else is a tool.
func geminiToolNames(tool object) []string {
	var names []string
	for field, v := range tool {
		if field != "functionDeclarations" && field != "function_declarations" {
			names = append(names, field)
			continue
		}
		names = append(names, lists.Map(asList(v), func(f any) string { return asString(asObject(f)["name"]) })...)
	}
	slices.Sort(names)
	return names
}
