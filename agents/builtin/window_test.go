package builtin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/engine/task"
)

// With a small window the oldest results go, the newest stay, and max_tokens fits
// into what is left.
func TestWindow(t *testing.T) {
	var replies []reply
	for i := range 8 {
		replies = append(replies, calls("read_file", fmt.Sprintf(`{"path":"big%d.txt"}`, i)))
	}
	s := newServer(t, append(replies, says(final))...)
	asked := agenttest.Task(t)
	asked.Model = &task.Model{Name: "m", Window: 8000, MaxOutput: 4000}
	for i := range 8 {
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 300)
		if err := os.WriteFile(filepath.Join(asked.Workspace, fmt.Sprintf("big%d.txt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.replies { // no counted tokens: the estimate alone
		s.replies[i].body = strings.Replace(s.replies[i].body, `"prompt_tokens":200`, `"prompt_tokens":0`, 1)
	}
	p := agenttest.NewProcess(t, asked, "OPENAI_BASE_URL="+s.http.URL+"/v1", "OPENAI_API_KEY=once")
	a := &Agent{}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	}()
	if err := agents.RunAdapter(t.Context(), a, p.Process); err != nil {
		t.Fatal(err)
	}
	for i, req := range s.requests {
		b, err := json.Marshal(req["messages"])
		if err != nil {
			t.Fatal(err)
		}
		room := int(req["max_tokens"].(float64))
		if used := len(b) / 4; used+room > 8000 || room < smallestReply || room > 4000 {
			t.Errorf("request %d: about %d tokens and %d for the answer", i, used, room)
		}
	}
	last := strings.Join(s.messages(8), "\n")
	if !strings.Contains(last, "line of file 7") || strings.Contains(last, "line of file 0") || !strings.Contains(last, droppedMark+`: 4500 bytes of read_file {"path":"big0.txt"}; call the tool again if you need it]`) {
		t.Errorf("dropped the wrong results: %.300q", last)
	}
	// The record has everything, whatever was dropped from the request.
	recorded := 0
	for _, n := range p.Nodes(t) {
		if m, ok := n.Payload.(map[string]any); ok && m["role"] == "tool" && strings.Contains(m["content"].(string), "line of file") {
			recorded++
		}
	}
	if recorded != 8 {
		t.Errorf("%d results recorded", recorded)
	}
}

func TestPromptLargerThanTheWindow(t *testing.T) {
	s := newServer(t, says(final))
	_, _, err := run(t, s, &task.Model{Name: "m", Window: 300, MaxOutput: 100})
	if err == nil || !strings.Contains(err.Error(), "window") || len(s.requests) != 0 {
		t.Errorf("error %v after %d requests", err, len(s.requests))
	}
}

// A server that counts differently refuses the request: it is made smaller.
func TestRefusedAsTooLong(t *testing.T) {
	tooLong := reply{400, `{"error":{"message":"This model's maximum context length is 100 tokens","code":"context_length_exceeded"}}`}
	s := newServer(t, calls("read_file", `{"path":"a.txt"}`, "grep", `{"pattern":"nothing at all that would be found in any of these files here, whatever they hold"}`), calls("list_dir", "{}"), tooLong, says(final))
	big := strings.Repeat("many words\n", 500)
	task := agenttest.Task(t)
	task.Model = plainModel()
	if err := os.WriteFile(filepath.Join(task.Workspace, "a.txt"), []byte(big), 0o644); err != nil {
		t.Fatal(err)
	}
	p := agenttest.NewProcess(t, task, "OPENAI_BASE_URL="+s.http.URL+"/v1", "OPENAI_API_KEY=once")
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	a := &Agent{Transport: tr}
	if err := agents.RunAdapter(t.Context(), a, p.Process); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if all := strings.Join(s.messages(3), "\n"); strings.Contains(all, "many words") || !strings.Contains(all, droppedMark) {
		t.Errorf("the smaller request: %.200q", all)
	}
	s = newServer(t, tooLong)
	if _, _, err := run(t, s, plainModel()); err == nil || len(s.requests) != 1 {
		t.Errorf("nothing to drop: %v after %d requests", err, len(s.requests))
	}
}

func TestDropKeepsTheLatestLongest(t *testing.T) {
	long := strings.Repeat("x", 500)
	call := func() openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: "assistant", ToolCalls: []openai.ToolCall{{Function: openai.FunctionCall{Name: "write_file", Arguments: `{"x":"` + long + `"}`}}}}
	}
	tool := func() openai.ChatCompletionMessage {
		return openai.ChatCompletionMessage{Role: "tool", Content: long}
	}
	h := []openai.ChatCompletionMessage{{Role: "user", Content: long}, call(), tool(), call(), tool()}
	var order []string
	for dropOldest(h) {
		for i := range h {
			if strings.HasPrefix(h[i].Content, droppedMark) {
				order = append(order, fmt.Sprint("result ", i))
				h[i].Content = "-"
			}
			for j := range h[i].ToolCalls {
				if h[i].ToolCalls[j].Function.Arguments == droppedArgs {
					order = append(order, fmt.Sprint("args ", i))
					h[i].ToolCalls[j].Function.Arguments = "{}"
				}
			}
		}
	}
	if got := strings.Join(order, ", "); got != "result 2, args 1, args 3, result 4" && got != "result 2, args 1, result 4" {
		t.Errorf("dropped %s", got)
	}
	if h[0].Content != long {
		t.Error("the prompt was dropped")
	}
}

func TestWindowLearns(t *testing.T) {
	w := &window{size: 1000, maxOutput: 100, ratio: 1}
	h := []openai.ChatCompletionMessage{{Role: "user", Content: strings.Repeat("x", 300)}}
	guess := w.estimateTokens(h)
	w.learnRatio(h, 2*guess)
	if got := w.estimateTokens(h); got < 2*guess-3 || got > 2*guess+3 {
		t.Errorf("after learning: %d, want about %d", got, 2*guess)
	}
	w.learnRatio(h, 0)
	w.learnRatio(h, 1<<40)
	if w.ratio != 3 {
		t.Errorf("ratio %v", w.ratio)
	}
}
