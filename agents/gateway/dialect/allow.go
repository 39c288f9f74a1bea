package dialect

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// A rule gives a field's value as the provider gets it; ok is false where the
// provider does not get the field.
type rule func(s *sieve, path string, raw json.RawMessage) (value json.RawMessage, ok bool)

// allowedFields are the fields of a dialect's requests that a provider gets: those whose
// cost is part of the usage that it reports, and bounded by what the request says.
// What else there is may run programs, search or cache at the provider's prices,
// choose a dearer tier or another model; so what is not known here is left out.
func allowedFields(d Dialect) map[string]rule {
	if d == Gemini {
		return geminiRules()
	}
	rules := commonRules()
	switch d {
	case Chat:
		for _, name := range []string{"messages", "functions", "function_call", "response_format",
			"frequency_penalty", "presence_penalty", "repetition_penalty", "repeat_penalty", "logit_bias", "logprobs", "seed",
			"random_seed", "stop", "stop_token_ids", "min_p", "top_a", "typical_p", "reasoning_effort", "reasoning_format",
			"include_reasoning", "enable_thinking", "chat_template_kwargs", "think", "verbosity", "guided_json", "guided_regex",
			"guided_choice", "guided_grammar", "structured_outputs", "grammar", "json_schema"} {
			rules[name] = asIs
		}
		rules["modalities"] = textOnly
		rules["n"] = wholeWithin(1, MaxChoices)
		rules["max_completion_tokens"], rules["thinking_budget"] = wholeWithin(0, maxOutput), wholeWithin(0, maxOutput)
		rules["usage"] = objectOf(map[string]rule{"include": allowFlag}) // OpenRouter: report the cost
	case Responses:
		for _, name := range []string{"input", "instructions", "text", "truncation", "include", "max_tool_calls", "previous_response_id", "client_metadata"} {
			rules[name] = asIs
		}
		rules["max_output_tokens"] = wholeWithin(0, maxOutput)
		delete(rules, "max_tokens")
	case Messages:
		for _, name := range []string{"messages", "system", "stop_sequences", "output_format"} {
			rules[name] = asIs
		}
		rules["output_config"] = objectOf(map[string]rule{"effort": asIs, "format": asIs, "task_budget": asIs})
		rules["context_management"] = objectOf(map[string]rule{"edits": allowClearing})
		rules["speed"] = oneOf("standard")
	}
	return rules
}

// commonRules are the rules that all dialects have.
func commonRules() map[string]rule {
	return map[string]rule{
		"model": asIs, "temperature": asIs, "top_p": asIs, "top_k": asIs, "top_logprobs": asIs, "tool_choice": asIs, "parallel_tool_calls": asIs,
		"metadata": asIs, "user": asIs, "safety_identifier": asIs, "cache_control": asIs, "prompt_cache_key": asIs, "prompt_cache_retention": asIs,
		"tools": clientTools, "stream": allowFlag, "store": allowFlag,
		"max_tokens":     wholeWithin(0, maxOutput),
		"stream_options": objectOf(map[string]rule{"include_usage": allowFlag, "include_obfuscation": allowFlag}),
		"thinking":       objectOf(map[string]rule{"type": asIs, "budget_tokens": wholeWithin(0, maxOutput), "display": asIs, "clear_thinking": asIs}),
		"reasoning": objectOf(map[string]rule{"effort": asIs, "max_tokens": wholeWithin(0, maxOutput), "summary": asIs, "generate_summary": asIs,
			"exclude": asIs, "enabled": asIs}),
		"service_tier": oneOf("auto", "default", "flex", "standard_only"),
	}
}

// MaxChoices is how many answers one request may ask for: a budget may be exceeded
// by one request, so that this is a bound on how far.
const MaxChoices = 8

// maxOutput is the largest number of tokens that a request may ask for.
const maxOutput = 1<<31 - 1

func asIs(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) { return raw, true }

// allowFlag is true or false. Some servers read a text as one, too, and would then do
// what nobody here knows of.
func allowFlag(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
	return raw, string(raw) == "true" || string(raw) == "false"
}

// wholeWithin is a whole number within bounds, written in digits alone: what is read
// here is what the provider reads.
func wholeWithin(least, most int) rule {
	return func(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
		n, ok := wholeNumber(readField(raw))
		if !ok || n < least || n > most {
			return nil, false
		}
		return writeJSON(n), true
	}
}

func oneOf(values ...string) rule {
	return func(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
		s := textOf(raw)
		return writeJSON(s), slices.Contains(values, s)
	}
}

// objectOf is an object with these fields and no others.
func objectOf(rules map[string]rule) rule {
	return func(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
		var fields map[string]json.RawMessage
		if text.DecodeJSON(raw, &fields) != nil || fields == nil {
			return nil, false
		}
		kept := s.siftFields(path+".", fields, rules)
		return writeJSON(kept), len(kept) > 0 || len(fields) == 0
	}
}

// textOnly are the kinds of answers, of which speech costs more than text.
func textOnly(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
	kinds := asList(readField(raw))
	return raw, len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind any) bool { return !strings.EqualFold(asString(kind), "text") })
}

// allowClearing are edits of the conversation that take something out of it. Others
// have a model write a summary first.
func allowClearing(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
	kept := list{}
	for _, e := range asList(readField(raw)) {
		if kind := asString(asObject(e)["type"]); strings.HasPrefix(kind, "clear_") {
			kept = append(kept, e)
		} else {
			s.noteDropped(path + ": " + kind)
		}
	}
	return writeJSON(kept), len(kept) > 0
}

// clientTools are the tools that the client runs itself. Those that run at the
// provider have a price of their own, bring input whose size nobody here knows, and
// reach places that the client may not reach.
func clientTools(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
	var tools []map[string]json.RawMessage
	if text.DecodeJSON(raw, &tools) != nil {
		return nil, false
	}
	kept := []map[string]json.RawMessage{}
	for _, tool := range tools {
		kind := textOf(tool["type"])
		if !s.runsAtClient(kind, tool) {
			s.noteDropped(path + ": " + cmp.Or(kind, strings.Join(slices.Sorted(maps.Keys(tool)), " ")))
			s.lost = append(s.lost, kind, textOf(tool["name"]))
			continue
		}
		s.toolFields(path, tool)
		if kind == "namespace" {
			inner, ok := clientTools(s, path, tool["tools"])
			if !ok {
				continue
			}
			tool["tools"] = inner
		}
		kept = append(kept, tool)
	}
	return writeJSON(kept), len(kept) > 0 || len(tools) == 0
}

// toolFields leaves out of a tool what is not the client's own. Chat's are few; some servers
// read others as tools of theirs, and names with capitals as those in small letters.
func (s *sieve) toolFields(path string, tool map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(tool)) {
		switch {
		case strings.ToLower(name) != name:
			delete(tool, name)
		case s.dialect == Chat && !slices.Contains([]string{"type", "function", "custom", "name", "description", "parameters", "strict", "cache_control"}, name):
			delete(tool, name)
			s.noteDropped(path + "." + name)
		}
	}
}

// anthropicClientTool are the types of Anthropic's own tools that the client runs,
// and of the search among the request's own tools, which costs nothing.
var anthropicClientTool = lazyregexp.New(`^(bash|text_editor|computer|memory|tool_search_tool(_regex|_bm25)?)(_\d+)?$`)

func (s *sieve) runsAtClient(kind string, tool map[string]json.RawMessage) bool {
	if kind == "" { // {"google_search":{}} is some servers' own
		return textOf(tool["name"]) != "" || tool["function"] != nil
	}
	switch s.dialect {
	case Messages:
		return kind == "custom" || anthropicClientTool.MatchString(kind)
	case Responses:
		switch kind {
		case "local_shell", "apply_patch", "tool_search", "namespace", "computer", "computer_use_preview":
			return true
		case "shell":
			return asString(asObject(readField(tool["environment"]))["type"]) == "local"
		}
	}
	return kind == "function" || kind == "custom"
}

// textOf is the text in a field; empty where there is none.
func textOf(raw json.RawMessage) string { return asString(readField(raw)) }

// sieve lets through what the provider may get of a request.
type sieve struct {
	dialect Dialect
	dropped []string // fields and tools that it does not get, as they are told
	lost    []string // types and names of these tools
	forced  string   // the one of these tools that the model must call; empty: none
}

// maxDropped is how many dropped fields of one request are told, and maxName how
// much of a name is, in bytes.
const (
	maxDropped = 20
	maxName    = 80
)

// siftRequest lets a request's fields through.
func (s *sieve) siftRequest(fields map[string]json.RawMessage) map[string]json.RawMessage {
	kept := s.siftFields("", fields, allowedFields(s.dialect))
	if len(s.lost) == 0 {
		return kept
	}
	_, some := kept["tools"]
	if !some {
		delete(kept, "parallel_tool_calls")
		delete(kept, "toolConfig")
	}
	chosen := !some
	Texts(kept["tool_choice"], func(_, name string) {
		if slices.Contains(s.lost, name) && name != "" {
			chosen, s.forced = true, name
		}
	})
	if chosen { // a choice among tools that are not there is an error
		delete(kept, "tool_choice")
	}
	return kept
}

// siftFields lets through what the rules allow.
func (s *sieve) siftFields(path string, fields map[string]json.RawMessage, rules map[string]rule) map[string]json.RawMessage {
	kept := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		told := len(s.dropped)
		if r := rules[name]; r != nil {
			if value, ok := r(s, path+name, fields[name]); ok {
				kept[name] = value
				continue
			}
		}
		if told == len(s.dropped) && !isEmptyField(fields[name]) {
			s.noteDropped(path + name)
		}
	}
	return kept
}

// isEmptyField says whether a field has a value that asks for nothing, so that nobody need be
// told that it was dropped.
func isEmptyField(raw json.RawMessage) bool {
	switch string(raw) {
	case "null", "false", `""`, "[]": // {} may well be a wish for what is usual
		return true
	}
	return false
}

// noteDropped notes what the provider does not get. Names are the client's: they are
// bounded, and hold nothing that a terminal obeys.
func (s *sieve) noteDropped(name string) {
	if len(s.dropped) == maxDropped {
		return
	}
	name = text.Cut(strings.Trim(strconv.QuoteToASCII(text.Cut(name, maxName)), `"`), maxName)
	if !slices.Contains(s.dropped, name) {
		s.dropped = append(s.dropped, name)
	}
}
