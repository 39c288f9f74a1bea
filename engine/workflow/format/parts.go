package format

// definition is the top level.
func definition() object {
	return object{
		"version": object{
			"const":       1,
			"description": "`version: 1` marks a definition of uwf 0.2–0.8: templates are Liquid, `$START` has `new` and `resume`, and any role may answer with `$status: $SUSPEND` and a `reason`. Without it, templates are mustache.",
		},
		"name":        described(ref("name"), "The workflow's name: letters, digits, - _ and . Give the file the same name."),
		"description": described(ref("text"), "What the workflow is for, in a sentence."),
		"roles": described(orIncluded(object{
			"type": "object", "minProperties": 1, "maxProperties": 200,
			"propertyNames": ref("name"), "additionalProperties": orIncluded(ref("role")),
		}), "The roles: what each kind of agent is told to be, and what it has to deliver."),
		"conditions": described(orIncluded(object{
			"type": "object", "propertyNames": object{"type": "string", "minLength": 1}, "additionalProperties": ref("condition"),
		}), "Named JSONata expressions that the edges of a list refer to."),
		"graph": described(orIncluded(object{
			"type": "object", "required": []any{"$START"},
			"properties":           object{"$START": startEdges()},
			"additionalProperties": orIncluded(ref("edges")),
		}), "Who works next: for `$START` and each role, where its output leads."),
		"limits": described(orIncluded(ref("limits")), "How far a thread may go. Configuration and flags can only lower it."),
	}
}

func role() object {
	text := func(about string) object { return described(ref("text"), about) }
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"description":  text("What the role does, in a sentence."),
			"goal":         text("What the role is to achieve."),
			"capabilities": described(object{"type": "array", "items": ref("text")}, "What the role can do, in a few words each. `[]` for nothing in particular."),
			"procedure":    text("How the role goes about its work, step by step."),
			"output":       text("What the fields of the output mean, for the agent."),
			"frontmatter":  described(ref("outputSchema"), "The JSON Schema of the role's output, which the agent writes as YAML frontmatter. `$status` (const or enum) says which edge is taken."),
			"meta":         described(ref("outputSchema"), "As `frontmatter`; the name of an earlier generation."),
			"systemPrompt": text("What the agent is told, in one text (2026-05-18). Later: goal, capabilities, procedure and output."),
			"outputSchema": described(ref("outputSchema"), "As `frontmatter`; the name of 2026-05-18."),
		},
		"required": []any{"description"},
	}
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
				"_":      described(ref("edge"), "The first role, and what it is told."),
				"new":    described(ref("edge"), "The first role of a new thread (`version: 1`)."),
				"resume": described(ref("edge"), "Who works when a thread that has ended is resumed."),
			},
			"anyOf": []any{object{"required": []any{"_"}}, object{"required": []any{"new"}}},
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
			"type": "array", "items": ref("listEdge"), "minItems": 1,
			"description": "A list of edges; the first whose condition holds is taken, `condition: null` always.",
		},
	}}
}

func edge() object {
	return object{
		"type": "object", "additionalProperties": false, "required": []any{"role"},
		"properties": edgeProperties(),
	}
}

func listEdge() object {
	e := edge()
	e["properties"].(object)["condition"] = object{
		"type":        []any{"string", "null"},
		"description": "The name of a condition; null or left out: always.",
	}
	return e
}

func edgeProperties() object {
	return object{
		"role":   described(object{"type": "string", "minLength": 1}, "The next role, `$END`, or `$SUSPEND` to ask a person."),
		"prompt": described(ref("text"), "What the next role is told. A template: `{{field}}` is a field of the output before, `{{_body}}` the text under its frontmatter."),
		"location": object{
			"type":        []any{"string", "null"},
			"description": "The folder to work in, relative to the work tree. A template.",
		},
	}
}

func condition() object {
	return object{"anyOf": []any{
		object{"type": "string", "minLength": 1, "description": "A JSONata expression over {start, steps}, such as `steps[-1].output.approved = false`."},
		object{
			"type": "object", "additionalProperties": false, "required": []any{"expression"},
			"properties": object{
				"description": described(ref("text"), "What the condition means."),
				"expression":  described(object{"type": "string", "minLength": 1}, "A JSONata expression over {start, steps}, such as `steps[-1].output.approved = false`."),
			},
		},
	}}
}

func limits() object {
	whole := func(about string) object { return object{"type": "integer", "minimum": 1, "description": about} }
	return object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"maxSteps":        whole("Steps of a thread."),
			"maxStepsPerRole": whole("Steps of each role."),
			"tokens":          whole("Input and output tokens together."),
			"costUsd":         object{"type": "number", "exclusiveMinimum": 0, "description": "US dollars."},
			"wall":            object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`, "description": "The agents' running time, such as `45m`."},
		},
	}
}
