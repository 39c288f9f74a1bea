package config

// SchemaID names the JSON Schema of the settings.
const SchemaID = "https://raw.githubusercontent.com/united-workforce/uwf/main/examples/config.schema.json"

// Schema is the JSON Schema (draft 7, which editors know) of a settings file, made
// of the table that files are read with.
func Schema() map[string]any {
	return allSettings(&Config{}).Document(SchemaID, "uwf settings")
}
