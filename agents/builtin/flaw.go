package builtin

import (
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// flaw is why an answer can't be used.
type flaw int

const (
	flawNone     flaw = iota
	flawEmpty         // neither text nor a tool call
	flawThoughts      // reasoning alone
	flawUnbegun       // the output limit came before any text
	flawCutOff        // the output limit came within the text
)

// findFlaw says what is wrong with an answer. One that calls tools is usable, whatever
// its text.
func findFlaw(choice openai.ChatCompletionChoice) flaw {
	msg := choice.Message
	atLimit := choice.FinishReason == openai.FinishReasonLength
	switch {
	case len(msg.ToolCalls) > 0:
		return flawNone
	case strings.TrimSpace(msg.Content) != "" && atLimit:
		return flawCutOff
	case strings.TrimSpace(msg.Content) != "":
		return flawNone
	case atLimit:
		return flawUnbegun
	case strings.TrimSpace(msg.ReasoningContent) != "":
		return flawThoughts
	}
	return flawEmpty
}

// describeFlaw tells the model what is wrong with its answer.
func (f flaw) describeFlaw() string {
	const goOn = " Go on with the work, or give your final answer."
	switch f {
	case flawCutOff:
		return "Your answer was cut off at the output limit. Give it again, whole and shorter."
	case flawUnbegun:
		return "Your answer reached the output limit before it held any text or tool call. Think less." + goOn
	case flawThoughts:
		return "Your answer was empty: it held reasoning, but neither text nor a tool call." + goOn
	}
	return "Your answer was empty: it held neither text nor a tool call." + goOn
}

// isEmpty reports whether the answer says nothing at all.
func (f flaw) isEmpty() bool { return f == flawEmpty || f == flawThoughts || f == flawUnbegun }

// askAgain tells the model what is wrong with its answer, or gives up on it: times is
// how many of its last answers, this one too, can't be used.
func (a *Agent) askAgain(f flaw, times int, finish openai.FinishReason) error {
	if times <= maxAskedAgain {
		a.appendMessage(openai.ChatMessageRoleUser, f.describeFlaw())
		return nil
	}
	advice := "run the step again, or give the role another model"
	if atLimit := f == flawUnbegun || f == flawCutOff; atLimit {
		advice = "raise maxOutput of the model, give the role less to do, or another model"
	}
	return fmt.Errorf("turn %d: %w: model %s gave %d unusable answers in a row, the last one %s (finish_reason %q); %s",
		a.usage.Turns, ErrNoAnswer, a.chat.model.Name, times, f, finish, advice)
}

func (f flaw) String() string {
	switch f {
	case flawCutOff:
		return "cut off at the output limit"
	case flawUnbegun:
		return "empty: it reached the output limit before any text or tool call"
	case flawThoughts:
		return "empty: reasoning, but neither text nor a tool call"
	}
	return "empty: neither text nor a tool call"
}
