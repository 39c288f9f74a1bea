package dialect

import "bytes"

// StreamWriter writes an answer as server-sent events while it comes. What the model thinks
// comes before what it says; calls are written whole, at the end.
type StreamWriter struct {
	out  eventStream
	buf  *bytes.Buffer
	said bool
}

// eventStream is how a dialect streams an answer: begin, parts of thoughts, parts of text,
// and the end with all of it.
type eventStream interface {
	begin()
	addThought(part string)
	addText(part string)
	keepAlive() // says nothing, so that clients go on waiting
	writeEnd(whole Reply)
}

// NewStreamWriter begins an answer. head has what is known of it before it comes: ID and
// Model. wantUsage is what a chat client asked for; the other dialects always report usage.
func NewStreamWriter(d Dialect, head Reply, wantUsage bool) *StreamWriter {
	w := &StreamWriter{buf: &bytes.Buffer{}}
	w.out = formatOf(d).stream(head, wantUsage, w.buf)
	w.out.begin()
	return w
}

// Add writes what is new, and gives all that was written since the last time.
func (w *StreamWriter) Add(thought, text string) []byte {
	if thought != "" && !w.said { // what comes late has no place
		w.out.addThought(thought)
	}
	if text != "" {
		w.said = true
		w.out.addText(text)
	}
	return w.take()
}

// KeepAlive writes an event that clients take for a sign of life.
func (w *StreamWriter) KeepAlive() []byte {
	w.out.keepAlive()
	return w.take()
}

// End writes the rest: calls, why it ended and the usage. The text of whole is what was added.
func (w *StreamWriter) End(whole Reply) []byte {
	w.out.writeEnd(whole.fillGaps())
	return w.take()
}

func (w *StreamWriter) take() []byte {
	out := bytes.Clone(w.buf.Bytes())
	w.buf.Reset()
	return out
}

type chatStream struct {
	head      Reply
	wantUsage bool
	buf       *bytes.Buffer
}

func newChatStream(head Reply, wantUsage bool, buf *bytes.Buffer) eventStream {
	return &chatStream{head, wantUsage, buf}
}

func (s *chatStream) writeChunk(choices list, usage any) {
	o := object{"id": "chatcmpl-" + s.head.ID, "object": "chat.completion.chunk", "created": 0, "model": s.head.Model, "choices": choices}
	if s.wantUsage {
		o["usage"] = usage
	}
	writeEvent(s.buf, "", o)
}

func (s *chatStream) writeDelta(delta object, finish any) {
	s.writeChunk(list{object{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (s *chatStream) begin()                 { s.writeDelta(object{"role": "assistant", "content": ""}, nil) }
func (s *chatStream) addThought(part string) { s.writeDelta(object{"reasoning_content": part}, nil) }
func (s *chatStream) addText(part string)    { s.writeDelta(object{"content": part}, nil) }
func (s *chatStream) keepAlive()             { s.buf.WriteString(": working\n\n") }

func (s *chatStream) writeEnd(whole Reply) {
	if len(whole.Calls) > 0 {
		s.writeDelta(object{"tool_calls": chatCalls(whole)}, nil)
	}
	s.writeDelta(object{}, chatFormat().writeEnd(whole.Finish))
	if s.wantUsage {
		s.writeChunk(list{}, whole.writeOpenAIUsage("prompt", "completion"))
	}
	s.buf.WriteString("data: [DONE]\n\n")
}

// anthropicStream writes one block after the other.
type anthropicStream struct {
	head  Reply
	buf   *bytes.Buffer
	open  string // type of the block that is written; empty: none
	index int    // of that block, or the next
}

func newAnthropicStream(head Reply, _ bool, buf *bytes.Buffer) eventStream {
	return &anthropicStream{head: head, buf: buf}
}

func (s *anthropicStream) send(kind string, o object) {
	o["type"] = kind
	writeEvent(s.buf, kind, o)
}

func (s *anthropicStream) begin() {
	message := anthropicBody(s.head)
	message["content"], message["stop_reason"] = list{}, nil
	asObject(message["usage"])["output_tokens"] = 0
	s.send("message_start", object{"message": message})
}

func (s *anthropicStream) addPart(kind string, empty, delta object) {
	if s.open != kind {
		s.closeBlock()
		s.open = kind
		s.send("content_block_start", object{"index": s.index, "content_block": empty})
	}
	s.send("content_block_delta", object{"index": s.index, "delta": delta})
}

func (s *anthropicStream) closeBlock() {
	if s.open != "" {
		s.send("content_block_stop", object{"index": s.index})
		s.open, s.index = "", s.index+1
	}
}

func (s *anthropicStream) addThought(part string) {
	s.addPart("thinking", object{"type": "thinking", "thinking": "", "signature": ""}, object{"type": "thinking_delta", "thinking": part})
}

func (s *anthropicStream) addText(part string) {
	s.addPart("text", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": part})
}

func (s *anthropicStream) keepAlive() { s.send("ping", object{}) }

func (s *anthropicStream) writeEnd(whole Reply) {
	body := anthropicBody(whole)
	for _, v := range asList(body["content"]) {
		if block := asObject(v); asString(block["type"]) == "tool_use" {
			s.closeBlock()
			delta := object{"type": "input_json_delta", "partial_json": string(writeJSON(block["input"]))}
			block["input"] = object{}
			s.addPart("tool_use", block, delta)
		}
	}
	s.closeBlock()
	s.send("message_delta", object{"delta": object{"stop_reason": body["stop_reason"], "stop_sequence": nil}, "usage": body["usage"]})
	s.send("message_stop", object{})
}

// responseStream writes one item after the other: what the model thought, what it said, and
// its calls.
type responseStream struct {
	head  Reply
	buf   *bytes.Buffer
	seq   int
	item  object // that is written; nil: none
	index int    // of that item, or the next
	text  string // of that item
}

func newResponseStream(head Reply, _ bool, buf *bytes.Buffer) eventStream {
	return &responseStream{head: head, buf: buf}
}

func (s *responseStream) send(kind string, o object) {
	o["type"], o["sequence_number"] = kind, s.seq
	s.seq++
	writeEvent(s.buf, kind, o)
}

// at adds where an event belongs.
func (s *responseStream) at(o object) object {
	o["item_id"], o["output_index"] = s.item["id"], s.index
	return o
}

func (s *responseStream) sendBegun(kind string) {
	begun := responseBody(s.head)
	begun["status"], begun["usage"], begun["output"], begun["incomplete_details"] = "in_progress", nil, list{}, nil
	s.send(kind, object{"response": begun})
}

func (s *responseStream) begin()     { s.sendBegun("response.created") }
func (s *responseStream) keepAlive() { s.sendBegun("response.in_progress") }

func (s *responseStream) addThought(part string) {
	if s.item == nil {
		s.item = object{"id": "rs_" + s.head.ID, "type": "reasoning", "summary": list{}}
		s.send("response.output_item.added", object{"output_index": s.index, "item": s.item})
		s.send("response.reasoning_summary_part.added", s.at(object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}}))
	}
	s.text += part
	s.send("response.reasoning_summary_text.delta", s.at(object{"summary_index": 0, "delta": part}))
}

func (s *responseStream) addText(part string) {
	if asString(s.item["type"]) != "message" {
		s.closeItem()
		s.item = object{"id": "msg_" + s.head.ID, "type": "message", "role": "assistant", "status": "in_progress", "content": list{}}
		s.send("response.output_item.added", object{"output_index": s.index, "item": s.item})
		s.send("response.content_part.added", s.at(object{"content_index": 0, "part": outputText("")}))
	}
	s.text += part
	s.send("response.output_text.delta", s.at(object{"content_index": 0, "delta": part}))
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": list{}}
}

func (s *responseStream) closeItem() {
	switch asString(s.item["type"]) {
	case "reasoning":
		part := object{"type": "summary_text", "text": s.text}
		s.send("response.reasoning_summary_text.done", s.at(object{"summary_index": 0, "text": s.text}))
		s.send("response.reasoning_summary_part.done", s.at(object{"summary_index": 0, "part": part}))
		s.item["summary"] = list{part}
	case "message":
		s.send("response.output_text.done", s.at(object{"content_index": 0, "text": s.text}))
		s.send("response.content_part.done", s.at(object{"content_index": 0, "part": outputText(s.text)}))
		s.item["content"], s.item["status"] = list{outputText(s.text)}, "completed"
	default:
		return
	}
	s.send("response.output_item.done", object{"output_index": s.index, "item": s.item})
	s.item, s.text, s.index = nil, "", s.index+1
}

func (s *responseStream) writeEnd(whole Reply) {
	s.closeItem()
	body := responseBody(whole)
	for _, v := range asList(body["output"]) {
		item := asObject(v)
		field, event := "arguments", "response.function_call_arguments"
		switch asString(item["type"]) {
		case "custom_tool_call":
			field, event = "input", "response.custom_tool_call_input"
		case "function_call":
		default:
			continue
		}
		s.item = item
		s.send("response.output_item.added", object{"output_index": s.index, "item": item})
		s.send(event+".delta", s.at(object{"delta": item[field]}))
		s.send(event+".done", s.at(object{field: item[field]}))
		s.send("response.output_item.done", object{"output_index": s.index, "item": item})
		s.index++
	}
	s.send("response."+asString(body["status"]), object{"response": body})
}

// geminiStream writes parts of the answer in events of its own form.
type geminiStream struct {
	head Reply
	buf  *bytes.Buffer
}

func newGeminiStream(head Reply, _ bool, buf *bytes.Buffer) eventStream {
	return &geminiStream{head, buf}
}

func (s *geminiStream) begin()     {}
func (s *geminiStream) keepAlive() {} // its clients know no event that says nothing

func (s *geminiStream) writePart(part object) {
	writeEvent(s.buf, "", object{"candidates": list{object{"index": 0, "content": object{"role": "model", "parts": list{part}}}},
		"modelVersion": s.head.Model, "responseId": s.head.ID})
}

func (s *geminiStream) addThought(part string) { s.writePart(object{"text": part, "thought": true}) }
func (s *geminiStream) addText(part string)    { s.writePart(object{"text": part}) }

func (s *geminiStream) writeEnd(whole Reply) {
	whole.Text, whole.Thoughts = "", ""
	writeEvent(s.buf, "", geminiBody(whole))
}
