package translate

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/lists"
)

// Loss is one thing that a client has on its own wire and not on chat.
type Loss struct {
	What    string // as Translation.Lost names it, or a refused request's error does
	Becomes string // what the model, or the client, gets in its place
	// Refused: the request gets an error that names it. Else the request goes on without it.
	Refused bool
	clients []dialect.Dialect
	fields  string // paths of request fields that are lost as a whole, if they ask for something
}

// loseFields notes the fields that chat has no place for.
func (b *builder) loseFields(d dialect.Dialect) {
	for _, l := range Losses(d) {
		for path := range strings.FieldsSeq(l.fields) {
			if v := fieldAt(b.asked, strings.Split(path, ".")...); v != nil && v != false && v != "disabled" {
				b.lose(l.What)
			}
		}
	}
}

// Losses are what clients of a dialect lose at a provider that speaks chat alone; none for
// chat itself.
func Losses(d dialect.Dialect) []Loss {
	return lists.Filter(allLosses(), func(l Loss) bool { return slices.Contains(l.clients, d) })
}

func allLosses() []Loss {
	messages, responses, gemini := []dialect.Dialect{dialect.Messages}, []dialect.Dialect{dialect.Responses}, []dialect.Dialect{dialect.Gemini}
	all := []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini}
	both := []dialect.Dialect{dialect.Messages, dialect.Gemini}
	named := []dialect.Dialect{dialect.Messages, dialect.Responses}
	return []Loss{
		{"what the model thought before", "left out: the model does not see its former thoughts", false, all, ""},
		{"images and files", "a note in the text that something was left out", false, all, ""},
		{"how much the model is to think", "the provider's own measure", false, all, "thinking.type thinking.budget_tokens output_config.effort reasoning.max_tokens reasoning.enabled " +
			"generationConfig.thinkingConfig.thinkingBudget generationConfig.thinkingConfig.thinkingLevel"},
		{"top_k", "left out", false, all, "top_k generationConfig.topK"},
		{"log probabilities", "left out", false, all, "top_logprobs generationConfig.responseLogprobs generationConfig.logprobs"},
		{"more than four stop sequences", "the first four", false, both, ""},
		{"cache_control of the whole request", "the provider's own cache", false, named, "cache_control"},
		{"context_management", "left out: the client shortens the conversation itself", false, messages, "context_management"},
		{"output_config.task_budget", "left out", false, messages, "output_config.task_budget"},
		{"tools that only one provider knows", "not offered", false, named, ""},
		{"items that only one provider knows", "left out", false, responses, ""},
		{"max_tool_calls", "left out: the client bounds its calls itself", false, responses, "max_tool_calls"},
		{"truncation", "an error if the conversation is too long", false, responses, "truncation"},
		{"a choice among some of the tools", "all of the tools", false, []dialect.Dialect{dialect.Responses, dialect.Gemini}, ""},
		{"safetySettings", "the provider's own", false, gemini, "safetySettings"},
		{"more than one candidate", "one", false, gemini, ""},
		{"a forced tool that the model does not get", "an error that names the tool", true, all, ""},
		{"previous_response_id of an answer that is no longer kept", "an error that names it", true, responses, ""},
		{"item_reference of an answer that is no longer kept", "an error that names it", true, responses, ""},
	}
}
