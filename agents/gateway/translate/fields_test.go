package translate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// meaningless are the fields that a wire allows and that ask for nothing that chat could give or
// lack, with the reason.
var meaningless = map[dialect.Dialect]map[string]string{
	dialect.Messages: {
		"metadata": "the user's name at Anthropic", "speed": "the usual speed is all that is let through",
		"reasoning.summary": notTheirs, "reasoning.generate_summary": notTheirs, "reasoning.exclude": notTheirs,
		"stream_options.include_usage": usageAlways, "stream_options.include_obfuscation": usageAlways,
		"thinking.clear_thinking": "former thoughts are left out",
	},
	dialect.Responses: {
		"client_metadata": "for OpenAI's logs", "include": "parts of the answer that chat does not have",
		"reasoning.exclude": notTheirs, "thinking.display": notTheirs, "thinking.clear_thinking": notTheirs,
		"stream_options.include_usage": usageAlways, "stream_options.include_obfuscation": usageAlways,
	},
	dialect.Gemini: {
		"generationConfig.mediaResolution": "images are left out", "generationConfig.responseModalities": "text is all that is let through",
	},
}

const (
	notTheirs   = "a field of another wire"
	usageAlways = "the usage is always told, and nothing is padded"
)

// bases are requests in which a field may matter.
var bases = map[dialect.Dialect][]string{
	dialect.Messages: {
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a","input_schema":{}}]}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"thinking":{"type":"enabled"}}`,
	},
	dialect.Responses: {`{"model":"m","input":"hi","tools":[{"type":"function","name":"a"}]}`},
	dialect.Gemini: {
		`{"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"a"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`,
	},
}

// values are what fields may be.
var values = []string{
	`1`, `2`, `true`, `false`, `"auto"`, `"low"`, `"flex"`, `"standard"`, `"none"`, `"NONE"`, `"enabled"`, `"omitted"`, `"application/json"`, `{"a":"b"}`, `["x"]`, `["a"]`, `["TEXT"]`,
	`{"verbosity":"low"}`, `{"type":"none"}`, `{"schema":{"type":"object"}}`, `[{"type":"clear_thinking"}]`,
	`[{"role":"user","content":"other"}]`, `[{"parts":[{"text":"other"}]}]`,
	`[{"type":"function","name":"b"}]`, `[{"name":"b","input_schema":{}}]`, `[{"functionDeclarations":[{"name":"b"}]}]`,
}

// parseClient reads a client's request; nil: it is none.
func parseClient(d dialect.Dialect, asked object) *dialect.Request {
	var r *dialect.Request
	var err error
	if d == dialect.Gemini {
		r, err = dialect.ParseGemini(dialect.GeminiPath{Model: "m"}, []byte(encode(asked)))
	} else {
		r, err = dialect.ParseRequest(d, []byte(encode(asked)))
	}
	if err != nil {
		return nil
	}
	return r
}

// with is a base with a field set.
func with(t *testing.T, base string, path []string, value string) object {
	t.Helper()
	asked, _ := decoded(t, []byte(base)).(object)
	at := asked
	for _, name := range path[:len(path)-1] {
		inner, ok := at[name].(object)
		if !ok {
			inner = object{}
			at[name] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = decoded(t, []byte(value))
	return asked
}

// keptFields are those of the fields at a path, all of that value, that a wire lets through.
func keptFields(t *testing.T, d dialect.Dialect, path, names []string, value string) []string {
	t.Helper()
	all := object{}
	for _, name := range names {
		all[name] = decoded(t, []byte(value))
	}
	all["model"] = "m" // without a model there is no request
	asked := all
	if len(path) > 0 {
		asked = with(t, bases[d][0], path, encode(all))
	}
	r := parseClient(d, asked)
	if r == nil {
		return nil
	}
	body := fieldAt(decoded(t, r.Body(r.Model, false)), path...)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !reflect.DeepEqual(fieldAt(body, name), all[name])
	})
}

// allowedFields are the paths of the fields that a wire lets through: each name in the rules'
// source is tried, and below each object that is looked into, too.
func allowedFields(t *testing.T, d dialect.Dialect, names, path []string) (found []string) {
	t.Helper()
	open := keptFields(t, d, path, names, `{"unheard_of":1}`)
	objects := keptFields(t, d, path, names, `{}`)
	looked := slices.DeleteFunc(objects, func(name string) bool { return slices.Contains(open, name) })
	open = append(open, looked...)
	for _, v := range values {
		open = append(open, keptFields(t, d, path, names, v)...)
	}
	slices.Sort(open)

	for _, name := range slices.Compact(open) {
		at := append(slices.Clone(path), name)
		if slices.Contains(looked, name) {
			found = append(found, allowedFields(t, d, names, at)...)
			continue
		}
		found = append(found, strings.Join(at, "."))
	}
	return found
}

// matters says whether a field changes anything that the provider or the client gets, or what is lost.
func matters(t *testing.T, d dialect.Dialect, path []string) bool {
	t.Helper()
	outcome := func(asked object) string {
		r := parseClient(d, asked)
		if r == nil {
			return "no request"
		}
		tr, err := NewTranslation(r, Options{Model: r.Model})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(string(tr.Request.Body(r.Model, false)), tr.Lost, r.Dropped, tr.thoughts, tr.input == nil)
	}
	for _, base := range bases[d] {
		plain, _ := decoded(t, []byte(base)).(object)
		for _, v := range values {
			at := len(path) - 1
			if len(keptFields(t, d, path[:at], path[at:], v)) > 0 && outcome(with(t, base, path, v)) != outcome(plain) {
				return true
			}
		}
	}
	return false
}

// Each field that a wire allows is carried, lost by name, or means nothing to chat.
func TestEachFieldIsCarriedOrNamed(t *testing.T) {
	var names []string
	for _, file := range []string{"allow.go", "gemini.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "../dialect/"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				name, _ := strconv.Unquote(lit.Value)
				names = append(names, name)
			}
			return true
		})
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || strings.ContainsAny(name, " .:/^") })

	for d, known := range map[dialect.Dialect][]string{
		dialect.Messages:  {"messages", "service_tier", "output_config.task_budget", "thinking.budget_tokens", "reasoning.effort"},
		dialect.Responses: {"input", "max_tool_calls", "prompt_cache_key", "reasoning.summary", "store"},
		dialect.Gemini:    {"contents", "generationConfig.seed", "generationConfig.thinkingConfig.thinkingLevel", "toolConfig.functionCallingConfig.allowedFunctionNames"},
	} {
		fields := allowedFields(t, d, names, nil)
		for _, field := range known {
			if !slices.Contains(fields, field) {
				t.Errorf("%s: %s is not found among %q", d.Name(), field, fields)
			}
		}
		listed := maps.Clone(meaningless[d])
		for _, field := range fields {
			switch isListed, has := meaningless[d][field] != "", matters(t, d, strings.Split(field, ".")); {
			case has && isListed:
				t.Errorf("%s: %s has a meaning", d.Name(), field)
			case !has && !isListed:
				t.Errorf("%s: %s is neither carried nor lost by name", d.Name(), field)
			}
			delete(listed, field)
		}
		for field := range listed {
			t.Errorf("%s: %s is not allowed", d.Name(), field)
		}
	}
}
