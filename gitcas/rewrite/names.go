package rewrite

import (
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// rule says what a string or a key of a payload is.
type rule uint8

const (
	free     rule = iota // text that can be replaced
	template             // text with variables in it
	name                 // other things depend on it
	word                 // a word of the format itself, nobody's text
)

// ruleOf tells what the strings and keys of a node are: a key has a nil value, and
// is the last part of its path. schema is that of the node; nil when unknown.
func ruleOf(typ node.Hash, schema any) func(path []string, v any) rule {
	own := func(path []string, v any) rule { return outputRule(schema, path, v) }
	switch {
	case typ == node.MetaSchema:
		own = schemaRule
	case record.IsStep(typ):
		own = recordRule("step")
	case record.IsStart(typ):
		own = recordRule("start")
	case typ == record.AnswerSchema:
		own = recordRule("answer")
	case record.IsWorkflow(typ):
		own = workflowRule
	}
	return func(path []string, v any) rule {
		if v == nil && vocabulary()[path[len(path)-1]] {
			return word
		}
		return own(path, v)
	}
}

// vocabulary are the names of all properties of the built-in schemas.
var vocabulary = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		m, _ := v.(map[string]any)
		props, _ := m["properties"].(map[string]any)
		for k := range props {
			out[k] = true
		}
		for _, e := range m {
			walk(e)
			list, _ := e.([]any)
			for _, e := range list {
				walk(e)
			}
		}
	}
	for _, n := range record.Schemas() {
		walk(n.Payload)
	}
	return out
})

// schemaRule: what only explains a schema is text. Its keywords are words, all
// else is what data has to fit.
func schemaRule(path []string, v any) rule {
	named := func(i int) bool { return i > 0 && (path[i-1] == "properties" || path[i-1] == "patternProperties") }
	last := len(path) - 1
	for i, k := range path {
		if named(i) {
			continue // the name of a property, whatever it is
		}
		switch k {
		case "title", "description", "$comment":
			if v != nil {
				return free
			}
		case "default", "examples":
			if v != nil || i < last {
				return free
			}
		case "type", "format":
			return word
		}
	}
	if v == nil && !named(last) {
		return word
	}
	return name
}

// recordRules are the rules of the fields of records, by their paths, and of all that is in
// them. "*" is any item of a list. What is not here is free, and the fields' names are words.
var recordRules = map[string]map[string]rule{
	"step": {
		"start": word, "prev": word, "output": word, "body": word, "detail": word, "assembledPrompt": word, "previousAttempts": word,
		"answer": word, "patch": word, "prepare": word, "digests": word, "by/kind": word, "work/commit": word, "checks/*/status": word,
		"role": name, "work/branch": name,
		// The counts add up to what the steps say they took.
		"usage": word, "counts/done": word, "counts/tries": word, "counts/roles/*/steps": word, "counts/roles/*/last": word,
		"counts/roles/*/tries": word, "counts/roles/*/role": name,
	},
	"start":  {"workflow": word, "base": word, "digests": word, "by/kind": word},
	"answer": {"words/*/do": word, "words/*/by/kind": word, "words/*/role": name},
}

// recordRule is that of one kind of records.
func recordRule(kind string) func(path []string, v any) rule {
	return func(path []string, v any) rule {
		if len(path) == 1 && v == nil {
			return word
		}
		at := ""
		for _, k := range path {
			if strings.Trim(k, "0123456789") == "" {
				k = "*"
			}
			at = strings.TrimPrefix(at+"/"+k, "/")
			if is, ok := recordRules[kind][at]; ok {
				return is
			}
		}
		return free
	}
}

// tag is what stands between the braces of a template.
var tag = lazyregexp.New(`(?s)\{\{.*?\}\}|\{%.*?%\}`)

// workflowRule: roles, statuses, targets and conditions are names, and so is what a
// condition is made of.
func workflowRule(path []string, v any) rule {
	if v == nil {
		return name
	}
	if len(path) == 6 && path[0] == "graph" && path[3] == "approval" {
		return word // who may not approve
	}
	switch path[len(path)-1] {
	case "name", "role", "condition", "expression", "status", "location", "to":
		return name
	case "dialect":
		return word
	}
	return template
}

// outputRule: the properties that the schema names, and the status that an edge of
// the graph is chosen by.
func outputRule(schema any, path []string, v any) rule {
	if len(path) == 1 && v != nil && slices.Contains([]string{"$status", "status"}, path[0]) {
		return name
	}
	if v != nil {
		return free
	}
	at := schema
	for _, k := range path {
		m, _ := at.(map[string]any)
		props, _ := m["properties"].(map[string]any)
		next, ok := props[k]
		if !ok {
			return free
		}
		at = next
	}
	return name
}
