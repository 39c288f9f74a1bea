// Package format describes what a workflow definition may look like, in every
// dialect, as a JSON Schema (draft 7, which editors read). It describes the shape;
// package workflow knows the sense. It is the one source of the schema that is
// shipped and printed.
package format

import "maps"

// URL is where the schema of the present version is found.
const URL = "https://raw.githubusercontent.com/united-workforce/uwf/main/examples/workflow.schema.json"

// object is a part of a schema.
type object = map[string]any

// Schema is the JSON Schema of workflow definitions.
func Schema() map[string]any {
	return withNotes(object{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"$id":     URL,
		"title":   "uwf workflow definition",
		"description": "Roles, and a graph that says who works next. All dialects: " +
			"statuses or JSONata conditions on the edges, mustache templates, or Liquid ones with `version: 1`.",
		"type":       "object",
		"required":   []any{"name", "description", "roles", "graph"},
		"properties": definitionSchema(),
		"definitions": object{
			"name": object{"type": "string", "maxLength": 64, "pattern": `^[\p{L}\p{Nd}][\p{L}\p{Nd}._-]*$`},
			"role": roleSchema(), "edges": edgesSchema(), "startEdge": edgeSchema(false), "edge": edgeSchema(true), "listEdge": listEdge(),
			"condition": conditionSchema(), "limits": limitsSchema(), "outputSchema": outputSchema(), "text": object{"type": "string"},
			"included": object{
				"type": "string", "pattern": `\.([jJ][sS][oO][nN]|[yY][aA]?[mM][lL])$`,
				"description": "`!include FILE`: a JSON or YAML file below the definition's folder.",
			},
		},
	})
}

// withNotes closes a map to keys that nobody reads, but for the author's own, x-….
func withNotes(part object) object {
	part["additionalProperties"] = false
	part["patternProperties"] = object{"^x-": true}
	return part
}

// withDescription is a part with an explanation for people who hover over it.
func withDescription(part object, text string) object {
	out := maps.Clone(part)
	if _, isRef := part["$ref"]; isRef {
		// Beside $ref, draft 7 ignores everything.
		out = object{"allOf": []any{part}}
	}
	out["description"] = text
	return out
}

func refTo(name string) object { return object{"$ref": "#/definitions/" + name} }

// orIncluded lets a part come from another file.
func orIncluded(part object) object { return object{"anyOf": []any{part, refTo("included")}} }

// orNull lets a key be there without a value.
func orNull(part object) object { return object{"anyOf": []any{part, object{"type": "null"}}} }
