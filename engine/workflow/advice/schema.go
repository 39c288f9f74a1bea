package advice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// schemaKeywords are what a schema may hold. References, and formats but for one, are not
// among them.
func schemaKeywords() []string {
	return strings.Fields(`type properties required additionalProperties anyOf oneOf allOf not if then else items contains
propertyNames patternProperties enum const title description minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
minLength maxLength pattern minItems maxItems uniqueItems minProperties maxProperties default examples readOnly writeOnly
deprecated $comment format`)
}

// Schema says how to mend what the guard walk complains about.
func Schema(schema any, p node.Problem) string {
	parts := lists.Map(strings.Split(strings.TrimPrefix(p.Path, "/"), "/"), func(part string) string {
		return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	})
	value := LookUp(schema, parts)
	key := parts[len(parts)-1]
	if _, err := strconv.Atoi(key); err == nil && strings.Contains(p.Message, "twice") {
		return "remove one of the two"
	}
	if !slices.Contains(schemaKeywords(), key) && strings.HasPrefix(p.Message, "unknown keyword") {
		if wrapped, is := LookUp(schema, []string{"schema"}).(map[string]any); is && len(parts) == 1 && wrapped != nil && slices.Contains([]string{"name", "strict", "schema"}, key) {
			return "take what is under `schema`: the rest is for a model's API"
		}
		return unknownKeywordFix(key, value, len(parts))
	}
	switch key {
	case "type":
		return typeFix(value)
	case "required":
		if b, is := value.(bool); is && b && len(parts) > 2 {
			return fmt.Sprintf("name the field in the list of the object around it: required: [%s]", parts[len(parts)-2])
		}
		return "write a list of field names: required: [$status]"
	case "enum":
		return fmt.Sprintf("write a list: enum: [%s]", orEllipsis(value))
	case "properties", "patternProperties":
		return "write a map from a field's name to its schema: {plan: {type: string}}"
	case "items":
		return "write one schema, which holds for every item: items: {type: string}"
	case "additionalProperties":
		return "write true or false: other words are text"
	case "format":
		return "leave it out, or use pattern; `format: ocas_ref` alone is allowed"
	case "$schema", "$id", "id", "$anchor":
		return "remove it"
	case "$ref", "$defs", "definitions":
		return "write each schema where it is used, or put it into a JSON file and !include that: references into the file are then replaced"
	case "pattern":
		if s, _ := value.(string); strings.Contains(s, "(?!") || strings.Contains(s, "(?=") || strings.Contains(s, "(?<") {
			return "RE2 has no look-around: write what must not match as `not: {pattern: …}` beside it, or list the values with `enum`"
		}
		if strings.Contains(p.Message, "repeat count") {
			return "write the length as minLength and maxLength beside the pattern, and + or * in the pattern"
		}
		return "use the syntax of RE2 (github.com/google/re2/wiki/Syntax)"
	}
	if _, text := value.(string); text && p.Message == "a schema must be an object, not a string" {
		return fmt.Sprintf("write a schema: %s: {type: %s}", key, orEllipsis(value))
	}
	return "correct the schema: see `uwf workflow schema` and json-schema.org"
}

// LookUp follows a pointer's parts. Nil: it names nothing.
func LookUp(v any, parts []string) any {
	for _, part := range parts {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// unknownKeywordFix explains a key that is no keyword: one of another language, a
// mistyped one, or the name of a field that stands a level too high.
func unknownKeywordFix(key string, value any, depth int) string {
	if other, ok := map[string]string{
		"min": "`minimum`, or minLength, minItems", "max": "`maximum`, or maxLength, maxItems", "regex": "`pattern`",
		"optional": "nothing: a field that `required` doesn't name is optional", "nullable": "`type: [string, null]`",
		"example": "`examples: […]`", "values": "`enum: […]`", "options": "`enum: […]`", "choices": "`enum: […]`", "fields": "`properties`",
		"desc": "`description`", "of": "`items`", "element": "`items`",
	}[key]; ok {
		return "write " + other
	}
	switch key {
	case "discriminator":
		return "remove it: the constants in the alternatives tell them apart"
	case "dependentRequired", "dependentSchemas", "dependencies":
		return "write it as if: {required: [a]}, then: {required: [b]}, in `allOf` if there are several"
	case "unevaluatedProperties":
		return "write `additionalProperties: false` in each object"
	case "prefixItems":
		return "write an object with a field for each place, or one schema for all items"
	}
	if s := text.Suggest(key, schemaKeywords()); s != "" {
		return "did you mean `" + s + "`?"
	}
	_, isMap := value.(map[string]any)
	if text, isText := value.(string); depth == 1 && (isMap || isText) {
		shape := "…"
		if isText {
			shape = "type: string"
			if strings.Contains(text, "|") || key == "$status" || key == "status" {
				shape = "enum: [" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ' ' || r == ',' }), ", ") + "]"
			}
		}
		return fmt.Sprintf("put fields under `properties`: {type: object, properties: {%s: {%s}}}", key, shape)
	}
	return "remove it, or use a keyword of JSON Schema"
}

func typeFix(value any) string {
	name, _ := value.(string)
	if other, ok := map[string]string{
		"str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "bool": "boolean", "list": "array",
		"dict": "object", "map": "object", "none": "null", "date": "string", "any": "", "enum": "string, with `enum: […]`",
	}[strings.ToLower(name)]; ok && other != "" {
		return "write type: " + other
	}
	if s := text.Suggest(name, []string{"string", "number", "integer", "boolean", "object", "array", "null"}); s != "" {
		return "did you mean `" + s + "`?"
	}
	return "write one of them, such as type: string, or leave it out for any value"
}

func orEllipsis(v any) string {
	if s, ok := v.(string); ok && s != "" && len(s) < 40 {
		return s
	}
	return "…"
}
