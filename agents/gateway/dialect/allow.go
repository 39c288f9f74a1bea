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

// allowed are the fields of a dialect's requests that a provider gets: those whose
// cost is part of the usage that it reports, and bounded by what the request says.
// What else there is may run programs, search or cache at the provider's prices,
// choose a dearer tier or another model; so what is not known here is left out.
func allowed(d Dialect) map[string]rule {
	rules := common()
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
		rules["n"] = whole(1, MaxChoices)
		rules["max_completion_tokens"], rules["thinking_budget"] = whole(0, maxOutput), whole(0, maxOutput)
		rules["usage"] = within(map[string]rule{"include": flag}) // OpenRouter: report the cost
	case Responses:
		for _, name := range []string{"input", "instructions", "text", "truncation", "include", "max_tool_calls", "previous_response_id", "client_metadata"} {
			rules[name] = asIs
		}
		rules["max_output_tokens"] = whole(0, maxOutput)
		delete(rules, "max_tokens")
	case Messages:
		for _, name := range []string{"messages", "system", "stop_sequences", "output_format"} {
			rules[name] = asIs
		}
		rules["output_config"] = within(map[string]rule{"effort": asIs, "format": asIs, "task_budget": asIs})
		rules["context_management"] = within(map[string]rule{"edits": clearing})
		rules["speed"] = oneOf("standard")
	}
	return rules
}

// common are the rules that all dialects have.
func common() map[string]rule {
	return map[string]rule{
		"model": asIs, "temperature": asIs, "top_p": asIs, "top_k": asIs, "top_logprobs": asIs, "tool_choice": asIs, "parallel_tool_calls": asIs,
		"metadata": asIs, "user": asIs, "safety_identifier": asIs, "cache_control": asIs, "prompt_cache_key": asIs, "prompt_cache_retention": asIs,
		"tools": clientTools, "stream": flag, "store": flag,
		"max_tokens":     whole(0, maxOutput),
		"stream_options": within(map[string]rule{"include_usage": flag, "include_obfuscation": flag}),
		"thinking":       within(map[string]rule{"type": asIs, "budget_tokens": whole(0, maxOutput), "display": asIs, "clear_thinking": asIs}),
		"reasoning": within(map[string]rule{"effort": asIs, "max_tokens": whole(0, maxOutput), "summary": asIs, "generate_summary": asIs,
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

// flag is true or false. Some servers read a text as one, too, and would then do
// what nobody here knows of.
func flag(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
	return raw, string(raw) == "true" || string(raw) == "false"
}

// whole is a whole number within bounds, written in digits alone: what is read
// here is what the provider reads.
func whole(least, most int) rule {
	return func(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
		v, err := decode(raw)
		n, ok := wholeNumber(v)
		if err != nil || !ok || n < least || n > most {
			return nil, false
		}
		return json.RawMessage(jsonText(n)), true
	}
}

func oneOf(values ...string) rule {
	return func(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
		v, err := decode(raw)
		s := str(v)
		return json.RawMessage(jsonText(s)), err == nil && slices.Contains(values, s)
	}
}

// within is an object with these fields and no others.
func within(rules map[string]rule) rule {
	return func(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
		var fields map[string]json.RawMessage
		if decodeInto(raw, &fields) != nil || fields == nil {
			return nil, false
		}
		kept := s.fields(path+".", fields, rules)
		return json.RawMessage(jsonText(kept)), len(kept) > 0 || len(fields) == 0
	}
}

// textOnly are the kinds of answers, of which speech costs more than text.
func textOnly(_ *sieve, _ string, raw json.RawMessage) (json.RawMessage, bool) {
	v, err := decode(raw)
	for _, kind := range arr(v) {
		if str(kind) != "text" {
			return nil, false
		}
	}
	return raw, err == nil && len(arr(v)) > 0
}

// clearing are edits of the conversation that take something out of it. Others
// have a model write a summary first.
func clearing(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
	v, err := decode(raw)
	kept := list{}
	for _, e := range arr(v) {
		if kind := str(obj(e)["type"]); strings.HasPrefix(kind, "clear_") {
			kept = append(kept, e)
		} else {
			s.drop(path + ": " + kind)
		}
	}
	return json.RawMessage(jsonText(kept)), err == nil && len(kept) > 0
}

// clientTools are the tools that the client runs itself. Those that run at the
// provider have a price of their own, bring input whose size nobody here knows, and
// reach places that the client may not reach.
func clientTools(s *sieve, path string, raw json.RawMessage) (json.RawMessage, bool) {
	var tools []map[string]json.RawMessage
	if decodeInto(raw, &tools) != nil {
		return nil, false
	}
	kept := []map[string]json.RawMessage{}
	for _, tool := range tools {
		kind := textOf(tool["type"])
		if !s.runsAtClient(kind, tool) {
			s.drop(path + ": " + cmp.Or(kind, strings.Join(slices.Sorted(maps.Keys(tool)), " ")))
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
	return json.RawMessage(jsonText(kept)), len(kept) > 0 || len(tools) == 0
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
			s.drop(path + "." + name)
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
			v, err := decode(tool["environment"])
			return err == nil && str(obj(v)["type"]) == "local"
		}
	}
	return kind == "function" || kind == "custom"
}

// textOf is the text in a field; empty where there is none.
func textOf(raw json.RawMessage) string {
	v, err := decode(raw)
	if err != nil {
		return ""
	}
	return str(v)
}

// sieve lets through what the provider may get of a request.
type sieve struct {
	dialect Dialect
	dropped []string // fields and tools that it does not get, as they are told
	lost    []string // types and names of these tools
}

// maxDropped is how many dropped fields of one request are told, and maxName how
// much of a name is, in bytes.
const (
	maxDropped = 20
	maxName    = 80
)

// request lets a request's fields through.
func (s *sieve) request(fields map[string]json.RawMessage) map[string]json.RawMessage {
	kept := s.fields("", fields, allowed(s.dialect))
	if len(s.lost) == 0 {
		return kept
	}
	_, some := kept["tools"]
	if !some {
		delete(kept, "parallel_tool_calls")
	}
	chosen := !some
	Texts(kept["tool_choice"], func(_, name string) { chosen = chosen || slices.Contains(s.lost, name) })
	if chosen { // a choice among tools that are not there is an error
		delete(kept, "tool_choice")
	}
	return kept
}

// fields lets through what the rules allow.
func (s *sieve) fields(path string, fields map[string]json.RawMessage, rules map[string]rule) map[string]json.RawMessage {
	kept := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		told := len(s.dropped)
		if r := rules[name]; r != nil {
			if value, ok := r(s, path+name, fields[name]); ok {
				kept[name] = value
				continue
			}
		}
		if told == len(s.dropped) && !saysNothing(fields[name]) {
			s.drop(path + name)
		}
	}
	return kept
}

// saysNothing says whether a field might as well not be there.
func saysNothing(raw json.RawMessage) bool {
	switch string(raw) {
	case "null", "false", `""`, "[]": // {} may well be a wish for what is usual
		return true
	}
	return false
}

// drop notes what the provider does not get. Names are the client's: they are
// bounded, and hold nothing that a terminal obeys.
func (s *sieve) drop(name string) {
	if len(s.dropped) == maxDropped {
		return
	}
	name = text.Cut(strings.Trim(strconv.QuoteToASCII(text.Cut(name, maxName)), `"`), maxName)
	if !slices.Contains(s.dropped, name) {
		s.dropped = append(s.dropped, name)
	}
}
