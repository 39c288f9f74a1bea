package config

// SchemaID names the JSON Schema of the settings.
const SchemaID = "https://github.com/united-workforce/uwf/config.schema.json"

// Schema is the JSON Schema (draft 7, which editors know) of a settings file, made
// of the table that files are read with.
func Schema() map[string]any {
	s := table(&Config{}).schema()
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["$id"] = SchemaID
	s["title"] = "uwf settings"
	return s
}

func (s setting) schema() map[string]any {
	out := s.shape()
	if s.doc != "" {
		out["description"] = s.doc
	}
	if s.orElse != nil {
		out["default"] = s.orElse
	}
	return out
}

// scalar is what a text may be written as: any plain value is read as it stands.
func scalar() []any { return []any{"string", "number", "boolean"} }

func (s setting) shape() map[string]any {
	switch s.kind {
	case ObjectValue:
		return s.objectSchema()
	case NamedValue:
		return map[string]any{"type": []any{"object", "null"}, "additionalProperties": s.entry("").schema()}
	case OverrideValue:
		return map[string]any{"type": []any{"string", "object", "null"}, "additionalProperties": s.entry("").schema()}
	case FlagValue:
		return map[string]any{"type": []any{"boolean", "null"}}
	case WholeValue:
		return map[string]any{"type": []any{"integer", "null"}, "minimum": s.least, "maximum": s.most}
	case NumberValue:
		return map[string]any{"type": []any{"number", "null"}, "minimum": 0}
	case ListValue:
		return map[string]any{"type": []any{"array", "null"}, "items": map[string]any{"type": scalar()}}
	case TimeValue:
		return map[string]any{"type": []any{"string", "null"}, "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`}
	}
	if s.choices != nil {
		choices := make([]any, 0, len(s.choices)+1)
		for _, c := range s.choices {
			choices = append(choices, c)
			if c == string(SandboxOff) {
				// Editors that read YAML 1.1 take the bare word off for false.
				choices = append(choices, false)
			}
		}
		return map[string]any{"enum": choices}
	}
	return map[string]any{"type": append(scalar(), "null")}
}

func (s setting) objectSchema() map[string]any {
	properties := map[string]any{}
	for _, f := range s.fields {
		properties[f.name] = f.schema()
	}
	return map[string]any{"type": []any{"object", "null"}, "properties": properties, "additionalProperties": false}
}
