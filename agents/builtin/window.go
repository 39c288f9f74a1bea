package builtin

import (
	"cmp"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/internal/text"
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
	droppedMark = "[dropped to stay within the model's window"
	droppedArgs = `{"dropped":"to stay within the model's window"}`
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
	if w.estimateTokens(history) > budget {
		// Some more than needed, so that not every turn begins otherwise than the one before:
		// what the provider has kept would be lost each time.
		for w.estimateTokens(history) > budget/4*3 && dropResult(history, latestTurn(history)) {
		}
		for w.estimateTokens(history) > budget && dropOldest(history) {
		}
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
	latest := latestTurn(history)
	return dropResult(history, latest) || dropArgs(history[:latest]) || dropResult(history, len(history))
}

// latestTurn is the end of the history without the results of the model's last message.
func latestTurn(history []openai.ChatCompletionMessage) int {
	latest := len(history)
	for latest > 0 && history[latest-1].Role != openai.ChatMessageRoleAssistant {
		latest--
	}
	return latest
}

// dropResult empties the oldest result before an end of the history. What it was stays as a
// line, and so does all that the model itself said: what it has decided is in there.
func dropResult(history []openai.ChatCompletionMessage, end int) bool {
	for i := range history[:end] {
		m := &history[i]
		if m.Role != openai.ChatMessageRoleTool || strings.HasPrefix(m.Content, droppedMark) {
			continue
		}
		line := fmt.Sprintf("%s: %d bytes of %s; call the tool again if you need it]", droppedMark, len(m.Content), describeResult(history[:i], m))
		if len(m.Content) > len(line) {
			m.Content = line
			return true
		}
	}
	return false
}

// maxDescribed bounds the arguments in such a line, in bytes.
const maxDescribed = 100

// describeResult says which call a result is of: read_file {"path":"a.go"}.
func describeResult(before []openai.ChatCompletionMessage, m *openai.ChatCompletionMessage) string {
	for i := len(before) - 1; i >= 0; i-- {
		for _, c := range before[i].ToolCalls {
			if c.ID == m.ToolCallID && c.ID != "" {
				return c.Function.Name + " " + text.Cut(text.Line(c.Function.Arguments), maxDescribed)
			}
		}
	}
	return cmp.Or(m.Name, "a tool's output")
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
