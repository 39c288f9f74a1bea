package dialect

import (
	"bytes"
	"cmp"
	"fmt"
)

// Reply is an answer to be written in a dialect: for replays and hand-written
// cassettes. Everything in it that a provider would make up (ids, times) is
// derived from ID, so that the same reply is the same bytes every time.
type Reply struct {
	Answer
	ID    string // as in "uwf-planner-1-2"
	Model string
}

// Body is the reply as one JSON value.
func (r Reply) Body(d Dialect) []byte {
	var v any
	switch d {
	case Responses:
		v = r.asResponse(r.asItems())
	case Messages:
		v = r.asAnthropic()
	default:
		v = r.asCompletion()
	}
	b, err := encodeJSON(v)
	if err != nil { // only values built here
		return []byte("{}")
	}
	return b
}

// Stream is the reply as server-sent events. wantUsage is what a chat client
// asked for; the other dialects always report usage.
func (r Reply) Stream(d Dialect, wantUsage bool) []byte {
	var buf bytes.Buffer
	switch d {
	case Responses:
		r.streamResponses(&buf)
	case Messages:
		r.streamAnthropic(&buf)
	default:
		r.streamChat(&buf, wantUsage)
	}
	return buf.Bytes()
}

// ContentType is the header that goes with Body or Stream.
func ContentType(stream bool) string {
	if stream {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

func (r Reply) callID(i int) string {
	if id := r.Calls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_%s_%d", r.ID, i+1)
}

func (r Reply) finishReason() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return FinishCalls
	}
	return FinishStop
}

// --- chat

func (r Reply) chatFinish() string {
	switch f := r.finishReason(); f {
	case FinishCalls:
		return "tool_calls"
	case FinishFilter:
		return "content_filter"
	default:
		return f
	}
}

func (r Reply) chatUsage() object {
	return object{
		"prompt_tokens": r.Usage.In, "completion_tokens": r.Usage.Out,
		"total_tokens":          r.Usage.In + r.Usage.Out,
		"prompt_tokens_details": object{"cached_tokens": r.Usage.CacheRead},
	}
}

func (r Reply) chatCalls(indexed bool) list {
	var out list
	for i, c := range r.Calls {
		call := object{"id": r.callID(i), "type": "function",
			"function": object{"name": c.Name, "arguments": argsText(c.Args)}}
		if indexed {
			call["index"] = i
		}
		out = append(out, call)
	}
	return out
}

func argsText(args Args) string { return string(cmp.Or(args, "{}")) }

func (r Reply) asCompletion() object {
	m := object{"role": "assistant", "content": r.Text}
	if r.Text == "" && len(r.Calls) > 0 {
		m["content"] = nil
	}
	if len(r.Calls) > 0 {
		m["tool_calls"] = r.chatCalls(false)
	}
	return object{
		"id": "chatcmpl-" + r.ID, "object": "chat.completion", "created": 0, "model": r.Model,
		"choices": list{object{"index": 0, "message": m, "finish_reason": r.chatFinish(), "logprobs": nil}},
		"usage":   r.chatUsage(),
	}
}

func (r Reply) streamChat(buf *bytes.Buffer, wantUsage bool) {
	chunk := func(choices list, usage any) {
		o := object{"id": "chatcmpl-" + r.ID, "object": "chat.completion.chunk", "created": 0,
			"model": r.Model, "choices": choices}
		if wantUsage {
			o["usage"] = usage
		}
		writeEvent(buf, "", o)
	}
	delta := func(d object, finish any) list {
		return list{object{"index": 0, "delta": d, "finish_reason": finish}}
	}
	chunk(delta(object{"role": "assistant", "content": ""}, nil), nil)
	if r.Text != "" {
		chunk(delta(object{"content": r.Text}, nil), nil)
	}
	if len(r.Calls) > 0 {
		chunk(delta(object{"tool_calls": r.chatCalls(true)}, nil), nil)
	}
	chunk(delta(object{}, r.chatFinish()), nil)
	if wantUsage {
		chunk(list{}, r.chatUsage())
	}
	buf.WriteString("data: [DONE]\n\n")
}

// --- anthropic

func (r Reply) anthropicFinish() string {
	switch f := r.finishReason(); f {
	case FinishStop:
		return "end_turn"
	case FinishCalls:
		return "tool_use"
	case FinishLength:
		return "max_tokens"
	case FinishFilter:
		return "refusal"
	default:
		return f
	}
}

func (r Reply) anthropicUsage() object {
	u := r.Usage
	return object{
		"input_tokens":                max(0, u.In-u.CacheRead-u.CacheWrite),
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
		"output_tokens":               u.Out,
	}
}

func (r Reply) anthropicInput(i int) any {
	v, err := decodeJSON([]byte(argsText(r.Calls[i].Args)))
	if err != nil || asObject(v) == nil {
		return object{}
	}
	return v
}

func (r Reply) asAnthropic() object {
	content := list{}
	if r.Text != "" {
		content = append(content, object{"type": "text", "text": r.Text})
	}
	for i, c := range r.Calls {
		content = append(content, object{"type": "tool_use", "id": r.callID(i), "name": c.Name, "input": r.anthropicInput(i)})
	}
	return object{"id": "msg_" + r.ID, "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": r.anthropicFinish(), "stop_sequence": nil, "usage": r.anthropicUsage()}
}

func (r Reply) streamAnthropic(buf *bytes.Buffer) {
	start := r.asAnthropic()
	start["content"], start["stop_reason"] = list{}, nil
	usage := r.anthropicUsage()
	usage["output_tokens"] = 0
	start["usage"] = usage
	writeEvent(buf, "message_start", object{"type": "message_start", "message": start})
	index := 0
	block := func(first, delta object) {
		writeEvent(buf, "content_block_start", object{"type": "content_block_start", "index": index, "content_block": first})
		writeEvent(buf, "content_block_delta", object{"type": "content_block_delta", "index": index, "delta": delta})
		writeEvent(buf, "content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	if r.Text != "" {
		block(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": r.Text})
	}
	for i, c := range r.Calls {
		block(object{"type": "tool_use", "id": r.callID(i), "name": c.Name, "input": object{}},
			object{"type": "input_json_delta", "partial_json": argsText(c.Args)})
	}
	writeEvent(buf, "message_delta", object{"type": "message_delta",
		"delta": object{"stop_reason": r.anthropicFinish(), "stop_sequence": nil},
		"usage": r.anthropicUsage()})
	writeEvent(buf, "message_stop", object{"type": "message_stop"})
}

// --- responses

func (r Reply) asItems() list {
	items := list{}
	if r.Text != "" {
		items = append(items, object{"id": "msg_" + r.ID, "type": "message", "role": "assistant", "status": "completed",
			"content": list{object{"type": "output_text", "text": r.Text, "annotations": list{}}}})
	}
	for i, c := range r.Calls {
		items = append(items, object{"id": fmt.Sprintf("fc_%s_%d", r.ID, i+1), "type": "function_call", "status": "completed",
			"call_id": r.callID(i), "name": c.Name, "arguments": argsText(c.Args)})
	}
	return items
}

func (r Reply) asResponse(items list) object {
	o := object{"id": "resp_" + r.ID, "object": "response", "created_at": 0, "model": r.Model,
		"status": "completed", "error": nil, "incomplete_details": nil, "output": items,
		"usage": object{"input_tokens": r.Usage.In, "output_tokens": r.Usage.Out,
			"total_tokens":          r.Usage.In + r.Usage.Out,
			"input_tokens_details":  object{"cached_tokens": r.Usage.CacheRead},
			"output_tokens_details": object{"reasoning_tokens": 0}}}
	switch r.finishReason() {
	case FinishLength:
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case FinishFilter:
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	return o
}

func (r Reply) streamResponses(buf *bytes.Buffer) {
	seq := 0
	send := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, seq
		seq++
		writeEvent(buf, kind, o)
	}
	begun := r.asResponse(list{})
	begun["status"], begun["usage"] = "in_progress", nil
	send("response.created", object{"response": begun})
	items := r.asItems()
	for i, v := range items {
		item := asObject(v)
		at := func(o object) object {
			o["item_id"], o["output_index"] = item["id"], i
			return o
		}
		send("response.output_item.added", object{"output_index": i, "item": item})
		if asString(item["type"]) == "message" {
			part := asList(item["content"])[0]
			send("response.content_part.added", at(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": list{}}}))
			send("response.output_text.delta", at(object{"content_index": 0, "delta": r.Text}))
			send("response.output_text.done", at(object{"content_index": 0, "text": r.Text}))
			send("response.content_part.done", at(object{"content_index": 0, "part": part}))
		} else {
			send("response.function_call_arguments.delta", at(object{"delta": item["arguments"]}))
			send("response.function_call_arguments.done", at(object{"arguments": item["arguments"]}))
		}
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	last := r.asResponse(items)
	send("response."+asString(last["status"]), object{"response": last})
}

// ModelInfo is one entry of a list of models.
type ModelInfo struct {
	ID    string
	Owner string
}

// ModelList is the answer to GET /v1/models, in the form of OpenAI or, for
// Anthropic clients, in theirs.
func ModelList(anthropic bool, models []ModelInfo) []byte {
	data := list{}
	for _, m := range models {
		data = append(data, modelObject(anthropic, m))
	}
	o := object{"object": "list", "data": data}
	if anthropic {
		o = object{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(models); n > 0 {
			o["first_id"], o["last_id"] = models[0].ID, models[n-1].ID
		}
	}
	b, err := encodeJSON(o)
	if err != nil { // only strings
		return []byte("{}")
	}
	return b
}

// ModelBody is the answer to GET /v1/models/{id}.
func ModelBody(anthropic bool, m ModelInfo) []byte {
	b, err := encodeJSON(modelObject(anthropic, m))
	if err != nil { // only strings
		return []byte("{}")
	}
	return b
}

func modelObject(anthropic bool, m ModelInfo) object {
	if anthropic {
		return object{"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z"}
	}
	return object{"id": m.ID, "object": "model", "created": 0, "owned_by": m.Owner}
}

// TokenCount is the answer to POST /v1/messages/count_tokens.
func TokenCount(n int64) []byte {
	return fmt.Appendf(nil, `{"input_tokens":%d}`, n)
}
