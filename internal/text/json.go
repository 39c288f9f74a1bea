package text

import (
	"bytes"
	"encoding/json"
)

// EncodeJSON is a value as JSON on one line, in which <, > and & stay readable.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
