package dialect

import "fmt"

// ModelInfo is one entry of a list of models.
type ModelInfo struct {
	ID    string
	Owner string
}

// ModelList is the answer to GET /v1/models, in the form of OpenAI or, for
// Anthropic clients, in theirs.
func ModelList(anthropic bool, models []ModelInfo) []byte {
	data := list{}
	for _, m := range models {
		data = append(data, modelObject(anthropic, m))
	}
	o := object{"object": "list", "data": data}
	if anthropic {
		o = object{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(models); n > 0 {
			o["first_id"], o["last_id"] = models[0].ID, models[n-1].ID
		}
	}
	return writeJSON(o)
}

// ModelBody is the answer to GET /v1/models/{id}.
func ModelBody(anthropic bool, m ModelInfo) []byte { return writeJSON(modelObject(anthropic, m)) }

func modelObject(anthropic bool, m ModelInfo) object {
	if anthropic {
		return object{"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z"}
	}
	return object{"id": m.ID, "object": "model", "created": 0, "owned_by": m.Owner}
}

// TokenCount is the answer to POST /v1/messages/count_tokens.
func TokenCount(n int64) []byte {
	return fmt.Appendf(nil, `{"input_tokens":%d}`, n)
}
