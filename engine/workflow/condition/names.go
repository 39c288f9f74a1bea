package condition

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/recolabs/gnata"
)

// roleNames are the texts that must be names of roles: what $first and $last are called
// with, and what the role of a step is compared with. Likewise of another field of steps.
func roleNames(tokens []token, field string) []Name {
	var out []Name
	add := func(t token) {
		if t.kind == quoted && t.name != "" {
			out = append(out, Name{Role: t.name, Offset: t.at, Length: t.length})
		}
	}
	for i, t := range tokens {
		switch {
		case field == "role" && t.kind == variable && (t.name == "first" || t.name == "last") && isToken(tokens, i+1, "(") && isToken(tokens, i+3, ")"):
			add(tokens[i+2])
		case t.text == field && (isToken(tokens, i+1, "=") || isToken(tokens, i+1, "!=")) && i+2 < len(tokens) && ofStep(tokens, i):
			add(tokens[i+2])
		}
	}
	return out
}

// isToken reports whether the i-th token is there and is this operator or name.
func isToken(tokens []token, i int, text string) bool {
	return i >= 0 && i < len(tokens) && tokens[i].text == text
}

// ofStep reports whether the i-th token is a field of steps: steps[role, steps.role,
// steps[…].role.
func ofStep(tokens []token, i int) bool {
	if isToken(tokens, i-1, "[") {
		return isToken(tokens, i-2, "steps")
	}
	if !isToken(tokens, i-1, ".") {
		return false
	}
	i -= 2
	for isToken(tokens, i, "]") {
		depth := 0
		for ; i >= 0; i-- {
			if isToken(tokens, i, "]") {
				depth++
			}
			if isToken(tokens, i, "[") {
				depth--
			}
			if depth == 0 {
				break
			}
		}
		i--
	}
	return isToken(tokens, i, "steps")
}

// functionNames are what a condition can call, with their $.
var functionNames = sync.OnceValue(func() []string {
	names := map[string]bool{"$first": true, "$last": true}
	gnata.NewCustomEnv(nil).Range(func(name string, _ any) { names["$"+name] = true })
	for name := range refusedFunctions() {
		delete(names, "$"+name)
	}
	return slices.Sorted(maps.Keys(names))
})

// suspectNames are the names in an expression that stand for nothing. To JSONata that is
// no mistake: the condition would just never hold.
func suspectNames(tokens []token) []SyntaxError {
	bound := boundVariables(tokens)
	inThread := threadContexts(tokens)
	var out []SyntaxError
	for i, t := range tokens {
		switch {
		case t.kind == variable && t.name != "" && t.name != "$" && !slices.Contains(bound, t.text) && !slices.Contains(functionNames(), t.text):
			out = append(out, unknownVariable(t, isToken(tokens, i+1, "("), bound))
		case t.kind == name && inThread[i] && !isWord(tokens, i):
			if field := strings.Trim(t.text, "`"); field != "start" && field != "steps" {
				out = append(out, unknownField(t, field, isToken(tokens, i+1, "(")))
			}
		}
	}
	return out
}

func unknownVariable(t token, called bool, bound []string) SyntaxError {
	s := SyntaxError{Offset: t.at, Length: t.length, Message: t.text + " is not set anywhere",
		Fix: "set it before: " + t.text + " := …; the thread is in start and steps, without a $", Name: t.text,
		Known: slices.Concat(bound, functionNames(), []string{"start", "steps"})}
	if called {
		s.Message, s.Fix = "there is no function "+t.text, "see docs.jsonata.org for the functions"
	}
	return s
}

func unknownField(t token, field string, called bool) SyntaxError {
	s := SyntaxError{Offset: t.at, Length: t.length, Message: "there is no " + field + ": an expression begins with start or steps",
		Fix: "write steps[-1].output." + t.text + " for a field of the last output", Name: field, Known: []string{"start", "steps"}}
	switch {
	case called:
		s.Message, s.Fix, s.Name = "there is no function "+field, "functions begin with $: $"+field+"(…)", ""
	case field == "output":
		s.Fix = "write steps[-1].output"
	}
	return s
}

// boundVariables are the variables that an expression sets itself, with their $.
func boundVariables(tokens []token) []string {
	var out []string
	params := 0 // brackets of a function's parameters that are open
	for i, t := range tokens {
		switch {
		case isToken(tokens, i, "(") && (params > 0 || isToken(tokens, i-1, "function") || isToken(tokens, i-1, "λ")):
			params++
		case isToken(tokens, i, ")") && params > 0:
			params--
		case t.kind == variable && (params > 0 || isToken(tokens, i+1, ":=") || isToken(tokens, i-1, "@") || isToken(tokens, i-1, "#")):
			out = append(out, t.text)
		}
	}
	return out
}

// threadContexts says of each token whether a name there is looked up in the thread
// itself: not after a dot, not in a predicate, not in what is done for each item.
// Where that can't be told it says no.
func threadContexts(tokens []token) []bool {
	out := make([]bool, len(tokens))
	open := []bool{true}
	for i, t := range tokens {
		here := open[len(open)-1]
		out[i] = here && !isToken(tokens, i-1, ".")
		if t.kind != other {
			continue
		}
		switch t.text {
		case "(":
			each := isToken(tokens, i-1, ".") || isToken(tokens, i-1, "^") || isToken(tokens, i-2, ".") && afterValue(tokens[:i])
			open = append(open, here && !each)
		case "[", "{":
			open = append(open, here && !isToken(tokens, i-1, ".") && !afterValue(tokens[:i]))
		case ")", "]", "}":
			if len(open) > 1 {
				open = open[:len(open)-1]
			}
		case "|", "%", "@", "#":
			return make([]bool, len(tokens))
		}
	}
	return out
}

// isWord reports whether a name is a part of the language, or a key of an object.
func isWord(tokens []token, i int) bool {
	if isToken(tokens, i+1, ":") && (isToken(tokens, i-1, "{") || isToken(tokens, i-1, ",")) {
		return true
	}
	switch tokens[i].text {
	case "true", "false", "null", "function", "λ":
		return true
	case "and", "or", "in":
		return afterValue(tokens[:i])
	}
	return false
}
