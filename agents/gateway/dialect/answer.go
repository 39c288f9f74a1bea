package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Answer is what a model answered.
type Answer struct {
	Text   string
	Calls  []Call
	Finish string // stop, calls, length or filter; empty when the provider did not say
	Usage  Usage
	// Bytes counts what the model wrote, thoughts too, for an estimate where the
	// provider reports no usage.
	Bytes int
}

// The names of Answer.Finish.
const (
	FinishStop   = "stop"
	FinishCalls  = "calls"
	FinishLength = "length"
	FinishFilter = "filter"
)

// ErrAnswer is wrapped by errors about an answer that is none.
var ErrAnswer = errors.New("unusable answer")

// ParseAnswer reads a plain (not streamed) answer of status 200.
func ParseAnswer(d Dialect, body []byte) (Answer, error) {
	v, err := decodeJSON(body)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: no JSON: %w", ErrAnswer, err)
	}
	o := asObject(v)
	if o == nil {
		return Answer{}, fmt.Errorf("%w: no JSON object", ErrAnswer)
	}
	if !isEmpty(o["error"]) { // OpenRouter answers 200 with an error inside
		return Answer{}, errorOf(o)
	}
	switch d {
	case Responses:
		return responsesAnswer(o), nil
	case Messages:
		return anthropicAnswer(o), nil
	default:
		return chatAnswer(o), nil
	}
}

// StreamError is an error that a provider reports inside an answer of status 200.
type StreamError struct {
	Code    string // its type or code; may be empty
	Message string
}

func (e *StreamError) Error() string {
	if e.Code == "" {
		return "the provider reports: " + e.Message
	}
	return fmt.Sprintf("the provider reports %s: %s", e.Code, e.Message)
}

// Temporary says whether asking again may help.
func (e *StreamError) Temporary() bool {
	switch e.Code {
	case "overloaded_error", "rate_limit_error", "api_error", "server_error", "rate_limit_exceeded",
		"408", "429", "500", "502", "503", "504", "529":
		return true
	}
	return false
}

// errorOf reads {"error": {type, code, message}} or {"error": "text"}.
func errorOf(o object) *StreamError {
	if s := asString(o["error"]); s != "" {
		return &StreamError{Message: s}
	}
	e := asObject(o["error"])
	code := asString(e["code"])
	if code == "" {
		code = string(asNumber(e["code"]))
	}
	if code == "" {
		code = asString(e["type"])
	}
	return &StreamError{Code: code, Message: asString(e["message"])}
}

func chatAnswer(o object) Answer {
	a := Answer{Usage: chatUsage(asObject(o["usage"]))}
	for i, c := range asList(o["choices"]) {
		choice := asObject(c)
		m := asObject(choice["message"])
		a.Bytes += countText(m)
		if i > 0 {
			continue
		}
		a.Text = flattenContent(m["content"])
		for _, call := range asList(m["tool_calls"]) {
			a.Calls = append(a.Calls, chatCall(asObject(call)))
		}
		a.Finish = chatFinish(asString(choice["finish_reason"]))
	}
	return a
}

// countText counts the bytes of all text below v.
func countText(v any) int {
	n := 0
	switch x := v.(type) {
	case string:
		n = len(x)
	case list:
		for _, e := range x {
			n += countText(e)
		}
	case object:
		for _, e := range x {
			n += countText(e)
		}
	}
	return n
}

func chatFinish(reason string) string {
	switch reason {
	case "tool_calls", "function_call":
		return FinishCalls
	case "content_filter":
		return FinishFilter
	}
	return reason // stop, length, or nothing
}

func chatUsage(u object) Usage {
	var out Usage
	out.In, out.HasIn = parseCount(asNumber(u["prompt_tokens"]))
	out.Out, out.HasOut = parseCount(asNumber(u["completion_tokens"]))
	details := asObject(u["prompt_tokens_details"])
	out.CacheRead, _ = parseCount(asNumber(details["cached_tokens"]))
	out.CacheWrite, _ = parseCount(asNumber(details["cache_write_tokens"]))
	if cost, ok := parsePrice(u["cost"]); ok { // OpenRouter, in US dollars
		out.CostUSD, out.HasCost = cost, true
		if byok, _ := u["is_byok"].(bool); byok { // billed by the provider behind it as well
			extra, _ := parsePrice(asObject(u["cost_details"])["upstream_inference_cost"])
			out.CostUSD += extra
		}
	}
	return out
}

func parsePrice(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e6 {
		return 0, false
	}
	return f, true
}

func anthropicAnswer(o object) Answer {
	a := Answer{Usage: anthropicUsage(Usage{}, asObject(o["usage"]))}
	for _, b := range asList(o["content"]) {
		block := asObject(b)
		a.Bytes += countText(block)
		switch asString(block["type"]) {
		case "text":
			a.Text = joinText(a.Text, asString(block["text"]))
		case "tool_use":
			a.Calls = append(a.Calls, anthropicCall(block))
		}
	}
	a.Finish = anthropicFinish(asString(o["stop_reason"]))
	return a
}

// joinText joins the text blocks of one message as flatten does.
func joinText(have, more string) string {
	if have == "" {
		return more
	}
	return have + "\n" + more
}

func anthropicFinish(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		return FinishStop
	case "tool_use":
		return FinishCalls
	case "max_tokens", "model_context_window_exceeded":
		return FinishLength
	case "refusal":
		return FinishFilter
	}
	return reason
}

// anthropicUsage adds a report to what is known: in a stream the input comes
// with the first event and the output, as a running total, with the last.
func anthropicUsage(known Usage, u object) Usage {
	keep := func(to *int64, v any) {
		if n, ok := parseCount(asNumber(v)); ok {
			*to = n
		}
	}
	if fresh, ok := parseCount(asNumber(u["input_tokens"])); ok {
		keep(&known.CacheRead, u["cache_read_input_tokens"])
		keep(&known.CacheWrite, u["cache_creation_input_tokens"])
		keep(&known.CacheHour, asObject(u["cache_creation"])["ephemeral_1h_input_tokens"])
		in := fresh + known.CacheRead + known.CacheWrite
		if in >= known.In {
			known.In, known.HasIn = in, true
		}
	}
	if out, ok := parseCount(asNumber(u["output_tokens"])); ok && out >= known.Out {
		known.Out, known.HasOut = out, true
	}
	return known
}

func responsesAnswer(o object) Answer {
	a := Answer{Usage: responsesUsage(asObject(o["usage"]))}
	for _, v := range asList(o["output"]) {
		item := asObject(v)
		a.Bytes += countText(item)
		switch asString(item["type"]) {
		case "message":
			a.Text = joinText(a.Text, flattenContent(item["content"]))
		case "function_call":
			a.Calls = append(a.Calls, Call{ID: asString(item["call_id"]), Name: asString(item["name"]), Args: Args(asString(item["arguments"]))})
		}
	}
	a.Finish = responsesFinish(o, len(a.Calls) > 0)
	return a
}

func responsesFinish(o object, calls bool) string {
	if asString(o["status"]) == "incomplete" {
		if strings.Contains(asString(asObject(o["incomplete_details"])["reason"]), "filter") {
			return FinishFilter
		}
		return FinishLength
	}
	if calls {
		return FinishCalls
	}
	if asString(o["status"]) == "completed" {
		return FinishStop
	}
	return ""
}

func responsesUsage(u object) Usage {
	var out Usage
	out.In, out.HasIn = parseCount(asNumber(u["input_tokens"]))
	out.Out, out.HasOut = parseCount(asNumber(u["output_tokens"]))
	out.CacheRead, _ = parseCount(asNumber(asObject(u["input_tokens_details"])["cached_tokens"]))
	if cost, ok := parsePrice(u["cost"]); ok {
		out.CostUSD, out.HasCost = cost, true
	}
	return out
}
