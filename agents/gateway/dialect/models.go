package dialect

import (
	"fmt"

	"github.com/united-workforce/uwf/internal/lists"
)

// ModelInfo is one entry of a list of models.
type ModelInfo struct {
	ID    string
	Owner string
}

// ModelList is the answer to a question for the models, in the form of the dialect's own
// provider. Google's names them with "models/" before.
func ModelList(d Dialect, models []ModelInfo) []byte {
	data := lists.Map(models, func(m ModelInfo) object { return modelObject(d, m) })
	o := object{"object": "list", "data": data}
	switch d {
	case Gemini:
		o = object{"models": data}
	case Messages:
		o = object{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(models); n > 0 {
			o["first_id"], o["last_id"] = models[0].ID, models[n-1].ID
		}
	}
	return writeJSON(o)
}

// ModelBody is the answer to a question for one model.
func ModelBody(d Dialect, m ModelInfo) []byte { return writeJSON(modelObject(d, m)) }

func modelObject(d Dialect, m ModelInfo) object {
	switch d {
	case Gemini:
		return object{"name": "models/" + m.ID, "displayName": m.ID, "supportedGenerationMethods": list{"generateContent", "streamGenerateContent", "countTokens"}}
	case Messages:
		return object{"type": "model", "id": m.ID, "display_name": m.ID, "created_at": "1970-01-01T00:00:00Z"}
	}
	return object{"id": m.ID, "object": "model", "created": 0, "owned_by": m.Owner}
}

// TokenCount is the answer to a question for a number of tokens.
func TokenCount(d Dialect, n int64) []byte {
	if d == Gemini {
		return fmt.Appendf(nil, `{"totalTokens":%d}`, n)
	}
	return fmt.Appendf(nil, `{"input_tokens":%d}`, n)
}
