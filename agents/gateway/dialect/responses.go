package dialect

import (
	"fmt"
	"strings"
)

// responsesFormat is that of OpenAI's responses.
func responsesFormat() format {
	return format{
		path: "/responses", messages: responsesMessages, body: responseBody, stream: newResponseStream,
		answer: (*Collector).addResponse, event: (*Collector).addResponseEvent,
		ends: []end{{"max_output_tokens", FinishLength}, {"content_filter", FinishFilter}}, // of what is incomplete
	}
}

func responsesMessages(request object) []Message {
	var out []Message
	if s := asString(request["instructions"]); s != "" {
		out = append(out, Message{Role: "system", Text: s})
	}
	if s, ok := request["input"].(string); ok {
		return append(out, Message{Role: "user", Text: s})
	}
	for _, v := range asList(request["input"]) {
		item := asObject(v)
		switch asString(item["type"]) {
		case "reasoning":
		case "function_call", "custom_tool_call":
			if n := len(out); n == 0 || out[n-1].Role != "assistant" {
				out = append(out, Message{Role: "assistant"})
			}
			last := &out[len(out)-1]
			last.Calls = append(last.Calls, responseCall(item))
		case "function_call_output", "custom_tool_call_output":
			out = append(out, Message{Role: "tool", Text: flattenContent(item["output"])})
		case "message", "":
			out = append(out, Message{Role: mapRole(asString(item["role"])), Text: flattenContent(item["content"])})
		default:
			out = append(out, Message{Role: "item", Text: describePart(item)})
		}
	}
	return out
}

func responseCall(item object) Call {
	c := Call{ID: asString(item["call_id"]), Name: asString(item["name"]), Args: Args(asString(item["arguments"])), Namespace: asString(item["namespace"])}
	if c.Custom = asString(item["type"]) == "custom_tool_call"; c.Custom {
		c.Args = Args(asString(item["input"]))
	}
	return c
}

// addResponse adds a plain answer. The last event of a stream holds one, too.
func (c *Collector) addResponse(o object) {
	a := &c.answer
	*a = Answer{Usage: readOpenAIUsage(asObject(o["usage"]), "input", "output")}
	for _, v := range asList(o["output"]) {
		item := asObject(v)
		a.Bytes += countText(item)
		switch asString(item["type"]) {
		case "message":
			c.addText(flattenContent(item["content"]))
		case "function_call", "custom_tool_call":
			a.Calls = append(a.Calls, responseCall(item))
		}
	}
	switch reason := asString(asObject(o["incomplete_details"])["reason"]); {
	case asString(o["status"]) == "incomplete" && strings.Contains(reason, "filter"):
		a.Finish = FinishFilter
	case asString(o["status"]) == "incomplete":
		a.Finish = FinishLength
	case len(a.Calls) > 0:
		a.Finish = FinishCalls
	case asString(o["status"]) == "completed":
		a.Finish = FinishStop
	}
}

func (c *Collector) addResponseEvent(kind string, o object) {
	whole := asObject(o["response"])
	switch kind {
	case "response.completed", "response.incomplete":
		c.addResponse(whole)
		c.done, c.ended = true, true
	case "response.failed":
		c.answer.Usage = readOpenAIUsage(asObject(whole["usage"]), "input", "output")
		c.err = errorOf(whole)
		c.done, c.ended = true, true
	case "error":
		c.err = errorOf(object{"error": object{"code": o["code"], "message": o["message"]}})
	default:
		delta := asString(o["delta"])
		c.answer.Bytes += len(delta)
		if kind == "response.output_text.delta" {
			c.answer.Text += delta
		}
	}
}

func responseItems(r Reply) list {
	items := list{}
	if r.Thoughts != "" {
		items = append(items, object{"id": "rs_" + r.ID, "type": "reasoning", "summary": list{object{"type": "summary_text", "text": r.Thoughts}}})
	}
	if r.Text != "" {
		items = append(items, object{"id": "msg_" + r.ID, "type": "message", "role": "assistant", "status": "completed",
			"content": list{outputText(r.Text)}})
	}
	for i, c := range r.Calls {
		item := object{"id": fmt.Sprintf("fc_%s_%d", r.ID, i+1), "type": "function_call", "status": "completed",
			"call_id": c.ID, "name": c.Name, "arguments": string(c.Args)}
		if c.Custom {
			delete(item, "arguments")
			item["type"], item["input"] = "custom_tool_call", string(c.Args)
		}
		if c.Namespace != "" {
			item["namespace"] = c.Namespace
		}
		items = append(items, item)
	}
	return items
}

func responseBody(r Reply) object {
	o := object{"id": "resp_" + r.ID, "object": "response", "created_at": 0, "model": r.Model,
		"status": "completed", "error": nil, "incomplete_details": nil, "output": responseItems(r),
		"usage": r.writeOpenAIUsage("input", "output")}
	if r.Finish == FinishLength || r.Finish == FinishFilter {
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": responsesFormat().writeEnd(r.Finish)}
	}
	return o
}
