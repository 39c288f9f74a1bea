package format

import "github.com/united-workforce/uwf/internal/lists"

// definitionSchema is the top level.
func definitionSchema() object {
	return object{
		"version": object{
			"const":       1,
			"description": "`version: 1` marks a definition of uwf 0.2–0.8: templates are Liquid, `$START` has `new` and `resume`, and any role may answer with `$status: $SUSPEND` and a `reason`. Without it, templates are mustache.",
		},
		"name":        withDescription(refTo("name"), "The workflow's name: letters, digits, - _ and . Give its file the same name."),
		"description": withDescription(refTo("text"), "What the workflow is for, in a sentence."),
		"roles": withDescription(orIncluded(object{
			"type": "object", "minProperties": 1, "maxProperties": 200,
			"propertyNames": refTo("name"), "additionalProperties": orIncluded(refTo("role")),
		}), "The roles: what each kind of agent is told to be, and what it has to deliver."),
		"conditions": withDescription(orNull(object{"anyOf": []any{
			object{"type": "object", "maxProperties": 500, "additionalProperties": refTo("condition")},
			object{"type": "array", "maxItems": 0},
			refTo("included"),
		}}), "Named JSONata expressions that the edges of a list refer to."),
		"graph": withDescription(orIncluded(object{
			"type": "object", "required": []any{"$START"},
			"properties":           object{"$START": startEdges()},
			"propertyNames":        object{"anyOf": []any{object{"const": "$START"}, refTo("name")}},
			"additionalProperties": refTo("edges"),
		}), "Who works next: for `$START` and each role, where its output leads."),
		"limits": withDescription(orNull(orIncluded(refTo("limits"))), "How far a thread may go. Configuration and flags can only lower it."),
	}
}

// The keys by which the generations say what a role is to do, and what they call
// the schema of its output.
func instructionStyles() [][]string {
	return [][]string{
		{"goal", "capabilities", "procedure", "output"},
		{"systemPrompt"},
		{"identity", "prepare", "execute", "report"},
	}
}

func schemaKeys() []any { return []any{"frontmatter", "meta", "outputSchema"} }

func roleSchema() object {
	text := func(about string) object { return withDescription(refTo("text"), about) }
	return withNotes(object{
		"type": "object",
		"properties": object{
			"description":  text("What the role does, in a sentence."),
			"goal":         text("What the role is to achieve."),
			"capabilities": withDescription(object{"type": "array", "items": refTo("text")}, "What the role can do, in a few words each. `[]` for nothing in particular."),
			"procedure":    text("How the role goes about its work, step by step."),
			"output":       text("What the fields of the output mean, for the agent."),
			"frontmatter":  withDescription(refTo("outputSchema"), "The JSON Schema of the role's output, which the agent writes as YAML frontmatter. `$status` (const or enum) says which edge is taken."),
			"meta":         withDescription(refTo("outputSchema"), "As `frontmatter`, on the architecture page."),
			"outputSchema": withDescription(refTo("outputSchema"), "As `frontmatter`, in 2026-05-18."),
			"systemPrompt": object{"type": "string", "minLength": 1, "description": "What the agent is told, in one text (2026-05-18); later goal, capabilities, procedure and output."},
			"identity":     text("Who the agent is; later `goal`."),
			"prepare":      text("What it does first; later in `procedure`."),
			"execute":      text("What it does then; later in `procedure`."),
			"report":       text("What it delivers; later `output`."),
			"checks":       checksSchema(),
		},
		"required": []any{"description"},
		"allOf":    []any{object{"oneOf": oneStyle()}, object{"oneOf": oneOfKeys(schemaKeys())}},
	})
}

// checksSchema are the names of a role's checks.
func checksSchema() object {
	return object{
		"type": "array", "minItems": 1, "maxItems": 16, "uniqueItems": true,
		"items":       object{"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$", "not": object{"enum": []any{"protect", "strict", "time"}}},
		"description": "What is run on the role's work after its answer, by name: `[test, lint]`. Which commands these are is configuration.",
	}
}

// oneStyle wants all keys of one style, and none of another.
func oneStyle() []any {
	var out []any
	for i, own := range instructionStyles() {
		others := object{}
		for k, keys := range instructionStyles() {
			for _, key := range keys {
				if k != i {
					others[key] = false
				}
			}
		}
		out = append(out, object{"required": toAny(own), "properties": others})
	}
	return out
}

func toAny(list []string) []any { return lists.Map(list, func(s string) any { return s }) }

func oneOfKeys(keys []any) []any {
	return lists.Map(keys, func(key any) any { return object{"required": []any{key}} })
}

func outputSchema() object {
	return object{"anyOf": []any{
		object{"type": "object"},
		object{"type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{13}$", "description": "The hash of a schema in the store."},
		refTo("included"),
	}}
}

// startEdges are the edges of $START.
func startEdges() object {
	return withDescription(object{"anyOf": []any{
		object{
			"type": "object", "additionalProperties": false,
			"properties": object{
				"_":      withDescription(refTo("startEdge"), "The first role, and what it is told."),
				"new":    withDescription(refTo("startEdge"), "The first role of a new thread, in the generation with `resume`."),
				"resume": withDescription(refTo("startEdge"), "Who works when a thread that has ended is resumed."),
			},
			"oneOf": oneOfKeys([]any{"_", "new"}),
		},
		object{"type": "array", "items": refTo("listEdge"), "minItems": 1},
		refTo("included"),
	}}, "Where a thread begins.")
}

func edgesSchema() object {
	return object{"anyOf": []any{
		object{
			"type": "object", "minProperties": 1, "additionalProperties": orIncluded(refTo("edge")),
			"properties":  object{"_": withDescription(refTo("edge"), "Taken by outputs without a status.")},
			"description": "A map from status to edge.",
		},
		object{
			"type": "array", "items": orIncluded(refTo("listEdge")), "minItems": 1,
			"description": "A list of edges: the first whose condition holds is taken; one without a condition always.",
		},
		refTo("included"),
	}}
}

// edgeSchema is one of a map. A role that comes next must be told what to do, but for
// the first one, which has the thread's prompt.
func edgeSchema(prompted bool) object {
	properties := edgeProperties(refTo("text"), object{"type": "null", "description": "Only edges of a list have conditions."})
	e := withNotes(object{"type": "object", "required": []any{"role"}, "properties": properties})
	if !prompted {
		properties["approval"] = object{"not": object{}, "description": "Only edges of roles need approvals: nobody has asked anything here."}
	}
	if prompted {
		e["if"] = object{"properties": object{"role": object{"const": "$END"}}}
		e["then"] = true
		e["else"] = object{"required": []any{"prompt"}}
	}
	return e
}

func listEdge() object {
	return withNotes(object{
		"type": "object", "required": []any{"role"},
		"properties": edgeProperties(orNull(refTo("text")), object{
			"type": []any{"string", "null"}, "description": "The name of a condition; null or left out: always.",
		}),
	})
}

func edgeProperties(prompt, condition object) object {
	return object{
		"role":      object{"type": "string", "minLength": 1, "description": "The next role, `$END`, or `$SUSPEND` to ask a person."},
		"prompt":    withDescription(prompt, "What the next role is told. A template: `{{field}}` is a field of the output before, `{{_body}}` the text under its frontmatter."),
		"condition": condition,
		"location": object{
			"type":        []any{"string", "null"},
			"description": "The folder to work in, relative to the work tree. A template.",
		},
		"approval": approvalSchema(),
	}
}

// approvalSchema says which person must have answered the role before an edge is taken.
func approvalSchema() object {
	names := object{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": object{"enum": []any{"starter", "author"}},
		"description": "Who the person must not be: who started the thread, who wrote what it is about.",
	}
	return withDescription(orIncluded(object{"anyOf": []any{
		object{"const": true},
		withNotes(object{"type": "object", "required": []any{"not"}, "properties": object{"not": names}}),
	}}), "The edge is taken only where the role was just answered, after a question of its own, by a person with the right to. `true`, or `{not: [starter, author]}` for another person than these.")
}

func conditionSchema() object {
	expression := object{
		"type": "string", "minLength": 1,
		"description": "A JSONata expression over {start, steps}, such as `steps[-1].output.approved = false`.",
	}
	return object{"anyOf": []any{
		expression,
		withNotes(object{
			"type": "object", "required": []any{"expression"},
			"properties": object{
				"description": withDescription(object{"type": []any{"string", "null"}}, "What the condition means."),
				"expression":  expression,
			},
		}),
	}}
}

func limitsSchema() object {
	whole := func(about string) object {
		return object{"type": "integer", "minimum": 1, "description": about}
	}
	return withNotes(object{
		"type": "object",
		"properties": object{
			"maxSteps":        whole("Steps of a thread."),
			"maxStepsPerRole": whole("Steps of each role."),
			"tokens":          whole("Input and output tokens together."),
			"costUsd":         object{"type": "number", "exclusiveMinimum": 0, "description": "US dollars."},
			"wall":            object{"type": "string", "pattern": `^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`, "description": "The agents' running time, such as `45m`."},
		},
	})
}
