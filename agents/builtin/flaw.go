package builtin

import (
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// flaw is why an answer can't be used.
type flaw struct {
	is      string // for people
	tell    string // for the model
	empty   bool   // the answer says nothing at all
	atLimit bool   // the output limit came before its end
}

// findFlaw says what is wrong with an answer; nil: nothing. One that calls tools is usable,
// whatever its text.
func findFlaw(choice openai.ChatCompletionChoice) *flaw {
	const goOn = " Go on with the work, or give your final answer."
	msg := choice.Message
	said, atLimit := strings.TrimSpace(msg.Content) != "", choice.FinishReason == openai.FinishReasonLength
	switch {
	case len(msg.ToolCalls) > 0, said && !atLimit:
		return nil
	case said:
		return &flaw{is: "cut off at the output limit", tell: "Your answer was cut off at the output limit. Give it again, whole and shorter.", atLimit: true}
	case atLimit:
		return &flaw{
			is:   "empty: it reached the output limit before any text or tool call",
			tell: "Your answer reached the output limit before it held any text or tool call. Think less." + goOn, empty: true, atLimit: true,
		}
	case strings.TrimSpace(msg.ReasoningContent) != "":
		return &flaw{
			is:   "empty: reasoning, but neither text nor a tool call",
			tell: "Your answer was empty: it held reasoning, but neither text nor a tool call." + goOn, empty: true,
		}
	}
	return &flaw{
		is:   "empty: neither text nor a tool call",
		tell: "Your answer was empty: it held neither text nor a tool call." + goOn, empty: true,
	}
}

// askAgain tells the model what is wrong with its answer, or gives up on it: times is
// how many of its last answers, this one too, can't be used.
func (a *Agent) askAgain(f *flaw, times int, finish openai.FinishReason) error {
	if times <= maxAskedAgain {
		a.appendMessage(openai.ChatMessageRoleUser, f.tell)
		return nil
	}
	advice := "run the step again, or give the role another model"
	if f.atLimit {
		advice = "raise maxOutput of the model, give the role less to do, or another model"
	}
	return fmt.Errorf("turn %d: %w: model %s gave %d unusable answers in a row, the last one %s (finish_reason %q); %s",
		a.usage.Turns, ErrNoAnswer, a.chat.model.Name, times, f.is, finish, advice)
}
