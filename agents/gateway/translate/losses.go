package translate

import (
	"slices"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Loss is one thing that a client has on its own wire and not on chat.
type Loss struct {
	What    string // as Translation.Lost names it, or a refused request's error does
	Becomes string // what the model, or the client, gets in its place
	// Refused: the request gets an error that names it. Else the request goes on without it.
	Refused bool
	clients []dialect.Dialect
}

// Losses are what clients of a dialect lose at a provider that speaks chat alone; none for
// chat itself.
func Losses(d dialect.Dialect) []Loss {
	var out []Loss
	for _, l := range allLosses() {
		if slices.Contains(l.clients, d) {
			out = append(out, l)
		}
	}
	return out
}

func allLosses() []Loss {
	messages, responses, gemini := []dialect.Dialect{dialect.Messages}, []dialect.Dialect{dialect.Responses}, []dialect.Dialect{dialect.Gemini}
	all := []dialect.Dialect{dialect.Messages, dialect.Responses, dialect.Gemini}
	both := []dialect.Dialect{dialect.Messages, dialect.Gemini}
	return []Loss{
		{"what the model thought before", "left out: the model does not see its former thoughts", false, all},
		{"images and files", "a note in the text that something was left out", false, all},
		{"how much the model is to think", "the provider's own measure", false, both},
		{"top_k", "left out", false, both},
		{"more than four stop sequences", "the first four", false, both},
		{"context_management", "left out: the client shortens the conversation itself", false, messages},
		{"tools that only one provider knows", "not offered", false, []dialect.Dialect{dialect.Messages, dialect.Responses}},
		{"items that only one provider knows", "left out", false, responses},
		{"text.verbosity", "left out", false, responses},
		{"a choice among some of the tools", "all of the tools", false, []dialect.Dialect{dialect.Responses, dialect.Gemini}},
		{"safetySettings", "the provider's own", false, gemini},
		{"more than one candidate", "one", false, gemini},
		{"a forced tool that the model does not get", "an error that names the tool", true, all},
		{"previous_response_id of an answer that is no longer kept", "an error that names it", true, responses},
		{"item_reference of an answer that is no longer kept", "an error that names it", true, responses},
	}
}
