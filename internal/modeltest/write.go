package modeltest

import (
	"cmp"
	"fmt"
	"strconv"
)

// turn is one answer of the model.
type turn struct {
	action
	number int // of the request: it makes ids different
	model  string
	usage  bool // chat: whether a stream tells the usage
	cost   float64
}

// writeAnswer is an answer as one object and as the events of a stream.
func writeAnswer(w Wire, t turn) (whole object, events [][]byte) {
	switch w {
	case Chat:
		return writeChat(t)
	case Messages:
		return writeMessages(t)
	case Responses:
		return writeResponses(t)
	}
	return writeGemini(t)
}

// event is one event of a stream. Anthropic and OpenAI's responses name theirs by type.
func event(v object) []byte {
	name, ok := v["type"].(string)
	if !ok {
		return fmt.Appendf(nil, "data: %s\n\n", marshal(v))
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, marshal(v))
}

// with is an object with some fields changed.
func with(o, changes object) object {
	changed := object{}
	for _, from := range []object{o, changes} {
		for name, v := range from {
			changed[name] = v
		}
	}
	return changed
}

func writeChat(t turn) (object, [][]byte) {
	base := object{"id": fmt.Sprintf("chatcmpl-%d", t.number), "created": 1, "model": t.model}
	usage := object{"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens}
	if t.cost > 0 {
		usage["cost"] = t.cost
	}
	said := object{"role": "assistant", "content": t.say}
	why := "stop"
	var events [][]byte
	chunk := func(delta object, why any) {
		events = append(events, event(with(base, object{"object": "chat.completion.chunk",
			"choices": list{object{"index": 0, "delta": delta, "finish_reason": why}}})))
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	if t.say != "" {
		chunk(object{"content": t.say}, nil)
	}
	if t.call != nil {
		why = "tool_calls"
		one := object{"id": fmt.Sprintf("call_%d", t.number), "type": "function",
			"function": object{"name": t.call.name, "arguments": string(marshal(t.call.args))}}
		said["tool_calls"] = list{one}
		chunk(object{"tool_calls": list{with(one, object{"index": 0})}}, nil)
	}
	why = cmp.Or(map[string]string{endLength: "length", endFilter: "content_filter"}[t.ends], why)
	chunk(object{}, why)
	if t.usage {
		events = append(events, event(with(base, object{"object": "chat.completion.chunk", "choices": list{}, "usage": usage})))
	}
	events = append(events, []byte("data: [DONE]\n\n"))
	return with(base, object{"object": "chat.completion", "usage": usage,
		"choices": list{object{"index": 0, "message": said, "finish_reason": why}}}), events
}

func writeMessages(t turn) (object, [][]byte) {
	usage := object{"input_tokens": InputTokens, "output_tokens": OutputTokens, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
	content, why := list{}, "end_turn"
	if t.say != "" {
		content = append(content, object{"type": "text", "text": t.say})
	}
	if t.call != nil {
		why = "tool_use"
		content = append(content, object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", t.number), "name": t.call.name, "input": t.call.args})
	}
	why = cmp.Or(map[string]string{endLength: "max_tokens", endFilter: "refusal"}[t.ends], why)
	whole := object{"id": fmt.Sprintf("msg_%d", t.number), "type": "message", "role": "assistant", "model": t.model,
		"content": content, "stop_reason": why, "stop_sequence": nil, "usage": usage}
	events := [][]byte{event(object{"type": "message_start", "message": with(whole, object{"content": list{}, "stop_reason": nil,
		"usage": with(usage, object{"output_tokens": 1})})})}
	for i, c := range objects(content) {
		empty, delta := with(c, object{"text": ""}), object{"type": "text_delta", "text": t.say}
		if c["type"] == "tool_use" {
			empty, delta = with(c, object{"input": object{}}), object{"type": "input_json_delta", "partial_json": string(marshal(c["input"]))}
		}
		events = append(events,
			event(object{"type": "content_block_start", "index": i, "content_block": empty}),
			event(object{"type": "content_block_delta", "index": i, "delta": delta}),
			event(object{"type": "content_block_stop", "index": i}))
	}
	return whole, append(events,
		event(object{"type": "message_delta", "delta": object{"stop_reason": why, "stop_sequence": nil}, "usage": object{"output_tokens": OutputTokens}}),
		event(object{"type": "message_stop"}))
}

func writeResponses(t turn) (object, [][]byte) {
	id := strconv.Itoa(t.number)
	usage := object{"input_tokens": InputTokens, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": OutputTokens,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": InputTokens + OutputTokens}
	part := object{"type": "output_text", "text": t.say, "annotations": list{}}
	items := list{object{"type": "message", "id": "msg_" + id, "status": "completed", "role": "assistant", "content": list{part}}}
	if t.call != nil {
		one := object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": t.call.name,
			"arguments": string(marshal(t.call.args)), "status": "completed"}
		if t.call.space != "" {
			one["namespace"] = t.call.space
		}
		items = append(items, one)
	}
	whole := object{"id": "resp_" + id, "object": "response", "created_at": 1, "status": "completed", "model": t.model, "output": items,
		"usage": usage, "parallel_tool_calls": false, "tool_choice": "auto", "tools": list{}}
	last := "response.completed"
	if t.ends != "" {
		last, whole["status"] = "response.incomplete", "incomplete"
		whole["incomplete_details"] = object{"reason": map[string]string{endLength: "max_output_tokens", endFilter: "content_filter"}[t.ends]}
	}
	var events [][]byte
	put := func(v object) { events = append(events, event(with(v, object{"sequence_number": len(events)}))) }
	put(object{"type": "response.created", "response": with(whole, object{"status": "in_progress", "output": list{}, "usage": nil})})
	for i, item := range objects(items) {
		if item["type"] == "message" {
			put(object{"type": "response.output_item.added", "output_index": i, "item": with(item, object{"content": list{}})})
			at := object{"item_id": item["id"], "output_index": i, "content_index": 0}
			put(with(at, object{"type": "response.content_part.added", "part": with(part, object{"text": ""})}))
			put(with(at, object{"type": "response.output_text.delta", "delta": t.say}))
			put(with(at, object{"type": "response.output_text.done", "text": t.say}))
		} else {
			put(object{"type": "response.output_item.added", "output_index": i, "item": with(item, object{"arguments": ""})})
			at := object{"item_id": item["id"], "output_index": i}
			put(with(at, object{"type": "response.function_call_arguments.delta", "delta": item["arguments"]}))
			put(with(at, object{"type": "response.function_call_arguments.done", "arguments": item["arguments"]}))
		}
		put(object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	put(object{"type": last, "response": whole})
	return whole, events
}

func writeGemini(t turn) (object, [][]byte) {
	parts := list{object{"text": t.say}}
	if t.call != nil {
		parts = append(parts, object{"functionCall": object{"name": t.call.name, "args": t.call.args}})
	}
	why := cmp.Or(map[string]string{endLength: "MAX_TOKENS", endFilter: "SAFETY"}[t.ends], "STOP")
	whole := object{
		"candidates":    list{object{"content": object{"role": "model", "parts": parts}, "finishReason": why, "index": 0}},
		"usageMetadata": object{"promptTokenCount": InputTokens, "candidatesTokenCount": OutputTokens, "totalTokenCount": InputTokens + OutputTokens},
		"modelVersion":  t.model, "responseId": fmt.Sprintf("r%d", t.number),
	}
	return whole, [][]byte{event(whole)}
}
