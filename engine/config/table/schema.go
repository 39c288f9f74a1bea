package table

// Schema is the JSON Schema (draft 7) of what may stand there.
func (s Setting) Schema() map[string]any {
	out := s.schemaOf()
	if s.Doc != "" {
		out["description"] = s.Doc
	}
	if s.OrElse != nil {
		out["default"] = s.OrElse
	}
	if s.amend != nil {
		s.amend(out)
	}
	return out
}

// Document is the JSON Schema of a whole file, under its id and title.
func (s Setting) Document(id, title string) map[string]any {
	out := s.Schema()
	out["$schema"], out["$id"], out["title"] = "http://json-schema.org/draft-07/schema#", id, title
	return out
}

// scalarTypes is what a text may be written as: any plain value is read as it stands.
func scalarTypes() []any { return []any{"string", "number", "boolean"} }

func (s Setting) schemaOf() map[string]any {
	switch s.Kind {
	case ObjectValue:
		return s.objectSchema()
	case NamedValue:
		out := map[string]any{"type": []any{"object", "null"}, "additionalProperties": s.Entry("").Schema()}
		if len(s.Reserved) > 0 {
			properties := map[string]any{}
			for _, f := range s.Reserved {
				properties[f.Name] = f.Schema()
			}
			out["properties"] = properties
		}
		return out
	case OverrideValue:
		return map[string]any{"type": []any{"string", "object", "null"}, "additionalProperties": s.Entry("").Schema()}
	case FlagValue:
		return map[string]any{"type": []any{"boolean", "null"}}
	case WholeValue:
		return map[string]any{"type": []any{"integer", "null"}, "minimum": s.Least, "maximum": s.Most}
	case NumberValue:
		return map[string]any{"type": []any{"number", "null"}, "minimum": 0}
	case ListValue, TextsValue:
		items := map[string]any{"type": scalarTypes()}
		if s.Item != nil {
			items = s.Item(0).Schema()
		}
		types := []any{"array", "null"}
		if s.Kind == TextsValue {
			types = append(scalarTypes(), types...)
		}
		return map[string]any{"type": types, "items": items}
	case TimeValue:
		return map[string]any{"type": []any{"string", "null"}, "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`}
	}
	if s.Choices != nil {
		choices := make([]any, 0, len(s.Choices)+1)
		for _, c := range s.Choices {
			choices = append(choices, c)
			if c == "off" {
				// Editors that read YAML 1.1 take the bare word off for false.
				choices = append(choices, false)
			}
		}
		return map[string]any{"enum": choices}
	}
	return map[string]any{"type": append(scalarTypes(), "null")}
}

func (s Setting) objectSchema() map[string]any {
	properties := map[string]any{}
	for _, f := range s.Fields {
		properties[f.Name] = f.Schema()
	}
	return map[string]any{"type": []any{"object", "null"}, "properties": properties, "additionalProperties": false}
}
