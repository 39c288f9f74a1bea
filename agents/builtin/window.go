package builtin

import (
	"cmp"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

const (
	// bytesPerToken is a cautious guess; real text has three to four.
	bytesPerToken = 3
	// perMessage is what a message costs besides its text, in bytes.
	perMessage = 24
	// defaultReply is kept free for the answer where the model's limit is unknown,
	// in tokens; smallestReply is the least that makes sense to ask for.
	defaultReply  = 4096
	smallestReply = 256
)

const (
	droppedResult = "[dropped to stay within the model's window; call the tool again if you need it]"
	droppedArgs   = `{"dropped":"to stay within the model's window"}`
)

// window keeps a conversation within the model's context. Tokens are estimated
// from bytes; the estimate is corrected by what each response reports.
type window struct {
	size      int // tokens; 0: unknown, nothing is dropped
	maxOutput int // tokens; 0: unknown
	fixed     int // bytes of the tools' definitions
	ratio     float64
}

// fitHistory drops the oldest tool results, then the oldest arguments of calls, until the
// request fits, and returns how many tokens the answer may have; 0: no limit.
func (w *window) fitHistory(history []openai.ChatCompletionMessage) (int, error) {
	if w.size <= 0 {
		return w.maxOutput, nil
	}
	budget := w.size - min(cmp.Or(w.maxOutput, defaultReply), w.size/2)
	for w.estimateTokens(history) > budget && dropOldest(history) {
	}
	used := w.estimateTokens(history)
	if used > w.size-smallestReply && w.countBytes(history)/2/bytesPerToken > w.size {
		return 0, fmt.Errorf("the prompt alone has about %d tokens, but the model's window has %d; use a model with a larger one, or shorten the role's prompt", used, w.size)
	}
	room := max(w.size-used, smallestReply)
	if w.maxOutput > 0 {
		room = min(room, w.maxOutput)
	}
	return room, nil
}

// shrinkHistory drops half of what can be dropped, after a request was refused as too
// long. It reports whether anything was left to drop.
func (w *window) shrinkHistory(history []openai.ChatCompletionMessage) bool {
	goal := w.countBytes(history) / 2
	shrunk := false
	for w.countBytes(history) > goal && dropOldest(history) {
		shrunk = true
	}
	return shrunk
}

// learnRatio corrects the estimate by the tokens that the server counted.
func (w *window) learnRatio(history []openai.ChatCompletionMessage, counted int) {
	if counted <= 0 {
		return
	}
	guess := float64(w.countBytes(history)) / bytesPerToken
	w.ratio = min(max(float64(counted)/guess, 0.5), 3)
}

func (w *window) estimateTokens(history []openai.ChatCompletionMessage) int {
	return int(float64(w.countBytes(history))/bytesPerToken*w.ratio) + 1
}

func (w *window) countBytes(history []openai.ChatCompletionMessage) int {
	n := w.fixed
	for _, m := range history {
		n += perMessage + len(m.Content)
		for _, c := range m.ToolCalls {
			n += perMessage + len(c.Function.Name) + len(c.Function.Arguments)
		}
	}
	return n
}

// dropOldest empties the oldest tool result that is worth it, else the oldest arguments.
// The last answer's results are what the model is about to read: they go last.
func dropOldest(history []openai.ChatCompletionMessage) bool {
	latest := len(history)
	for latest > 0 && history[latest-1].Role != openai.ChatMessageRoleAssistant {
		latest--
	}
	return dropResult(history[:latest]) || dropArgs(history[:latest]) || dropResult(history)
}

func dropResult(history []openai.ChatCompletionMessage) bool {
	for i := range history {
		m := &history[i]
		if m.Role == openai.ChatMessageRoleTool && len(m.Content) > len(droppedResult) {
			m.Content = droppedResult
			return true
		}
	}
	return false
}

func dropArgs(history []openai.ChatCompletionMessage) bool {
	for i := range history {
		for j := range history[i].ToolCalls {
			f := &history[i].ToolCalls[j].Function
			if len(f.Arguments) > 2*len(droppedArgs) && !strings.HasPrefix(f.Arguments, `{"dropped"`) {
				f.Arguments = droppedArgs
				return true
			}
		}
	}
	return false
}
