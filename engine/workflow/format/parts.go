package format

// definition is the top level.
func definition() object {
	return object{
		"version": object{
			"const":       1,
			"description": "`version: 1` marks a definition of uwf 0.2–0.8: templates are Liquid, `$START` has `new` and `resume`, and any role may answer with `$status: $SUSPEND` and a `reason`. Without it, templates are mustache.",
		},
		"name":        described(ref("name"), "The workflow's name: letters, digits, - _ and . Give its file the same name."),
		"description": described(ref("text"), "What the workflow is for, in a sentence."),
		"roles": described(orIncluded(object{
			"type": "object", "minProperties": 1, "maxProperties": 200,
			"propertyNames": ref("name"), "additionalProperties": orIncluded(ref("role")),
		}), "The roles: what each kind of agent is told to be, and what it has to deliver."),
		"conditions": described(orNull(object{"anyOf": []any{
			object{"type": "object", "maxProperties": 500, "additionalProperties": ref("condition")},
			object{"type": "array", "maxItems": 0},
			ref("included"),
		}}), "Named JSONata expressions that the edges of a list refer to."),
		"graph": described(orIncluded(object{
			"type": "object", "required": []any{"$START"},
			"properties":           object{"$START": startEdges()},
			"propertyNames":        object{"anyOf": []any{object{"const": "$START"}, ref("name")}},
			"additionalProperties": ref("edges"),
		}), "Who works next: for `$START` and each role, where its output leads."),
		"limits": described(orNull(orIncluded(ref("limits"))), "How far a thread may go. Configuration and flags can only lower it."),
	}
}

// The keys by which the generations say what a role is to do, and what they call
// the schema of its output.
func styles() [][]string {
	return [][]string{
		{"goal", "capabilities", "procedure", "output"},
		{"systemPrompt"},
		{"identity", "prepare", "execute", "report"},
	}
}

func schemaKeys() []any { return []any{"frontmatter", "meta", "outputSchema"} }

func role() object {
	text := func(about string) object { return described(ref("text"), about) }
	return withNotes(object{
		"type": "object",
		"properties": object{
			"description":  text("What the role does, in a sentence."),
			"goal":         text("What the role is to achieve."),
			"capabilities": described(object{"type": "array", "items": ref("text")}, "What the role can do, in a few words each. `[]` for nothing in particular."),
			"procedure":    text("How the role goes about its work, step by step."),
			"output":       text("What the fields of the output mean, for the agent."),
			"frontmatter":  described(ref("outputSchema"), "The JSON Schema of the role's output, which the agent writes as YAML frontmatter. `$status` (const or enum) says which edge is taken."),
			"meta":         described(ref("outputSchema"), "As `frontmatter`, on the architecture page."),
			"outputSchema": described(ref("outputSchema"), "As `frontmatter`, in 2026-05-18."),
			"systemPrompt": object{"type": "string", "minLength": 1, "description": "What the agent is told, in one text (2026-05-18); later goal, capabilities, procedure and output."},
			"identity":     text("Who the agent is; later `goal`."),
			"prepare":      text("What it does first; later in `procedure`."),
			"execute":      text("What it does then; later in `procedure`."),
			"report":       text("What it delivers; later `output`."),
		},
		"required": []any{"description"},
		"allOf":    []any{object{"oneOf": oneStyle()}, object{"oneOf": oneOfKeys(schemaKeys())}},
	})
}

// oneStyle wants all keys of one style, and none of another.
func oneStyle() []any {
	var out []any
	for i, own := range styles() {
		others := object{}
		for k, keys := range styles() {
			for _, key := range keys {
				if k != i {
					others[key] = false
				}
			}
		}
		out = append(out, object{"required": anys(own), "properties": others})
	}
	return out
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func oneOfKeys(keys []any) []any {
	var out []any
	for _, key := range keys {
		out = append(out, object{"required": []any{key}})
	}
	return out
}

func outputSchema() object {
	return object{"anyOf": []any{
		object{"type": "object"},
		object{"type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{13}$", "description": "The hash of a schema in the store."},
		ref("included"),
	}}
}

// startEdges are the edges of $START.
func startEdges() object {
	return described(object{"anyOf": []any{
		object{
			"type": "object", "additionalProperties": false,
			"properties": object{
				"_":      described(ref("startEdge"), "The first role, and what it is told."),
				"new":    described(ref("startEdge"), "The first role of a new thread, in the generation with `resume`."),
				"resume": described(ref("startEdge"), "Who works when a thread that has ended is resumed."),
			},
			"oneOf": oneOfKeys([]any{"_", "new"}),
		},
		object{"type": "array", "items": ref("listEdge"), "minItems": 1},
		ref("included"),
	}}, "Where a thread begins.")
}

func edges() object {
	return object{"anyOf": []any{
		object{
			"type": "object", "minProperties": 1, "additionalProperties": orIncluded(ref("edge")),
			"properties":  object{"_": described(ref("edge"), "Taken by outputs without a status.")},
			"description": "A map from status to edge.",
		},
		object{
			"type": "array", "items": orIncluded(ref("listEdge")), "minItems": 1,
			"description": "A list of edges: the first whose condition holds is taken; one without a condition always.",
		},
		ref("included"),
	}}
}

// edge is one of a map. A role that comes next must be told what to do, but for
// the first one, which has the thread's prompt.
func edge(prompted bool) object {
	properties := edgeProperties(ref("text"), object{"type": "null", "description": "Only edges of a list have conditions."})
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
		"properties": edgeProperties(orNull(ref("text")), object{
			"type": []any{"string", "null"}, "description": "The name of a condition; null or left out: always.",
		}),
	})
}

func edgeProperties(prompt, condition object) object {
	return object{
		"role":      object{"type": "string", "minLength": 1, "description": "The next role, `$END`, or `$SUSPEND` to ask a person."},
		"prompt":    described(prompt, "What the next role is told. A template: `{{field}}` is a field of the output before, `{{_body}}` the text under its frontmatter."),
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
	return described(orIncluded(object{"anyOf": []any{
		object{"const": true},
		withNotes(object{"type": "object", "required": []any{"not"}, "properties": object{"not": names}}),
	}}), "The edge is taken only where the role was just answered, after a question of its own, by a person with the right to. `true`, or `{not: [starter, author]}` for another person than these.")
}

func condition() object {
	expression := object{
		"type": "string", "minLength": 1,
		"description": "A JSONata expression over {start, steps}, such as `steps[-1].output.approved = false`.",
	}
	return object{"anyOf": []any{
		expression,
		withNotes(object{
			"type": "object", "required": []any{"expression"},
			"properties": object{
				"description": described(object{"type": []any{"string", "null"}}, "What the condition means."),
				"expression":  expression,
			},
		}),
	}}
}

func limits() object {
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
