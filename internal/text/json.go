package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeJSON reads exactly one JSON value into what a pointer points to. Numbers of no type
// stay as they are written.
func DecodeJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// EncodeJSON is a value as JSON on one line, in which <, > and & stay readable.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// IndentJSON is [EncodeJSON] over several lines.
func IndentJSON(v any) ([]byte, error) {
	b, err := EncodeJSON(v)
	if err == nil {
		err = (*jsontext.Value)(&b).Indent(jsontext.WithIndent("  ")) // three times as fast as SetIndent
	}
	return b, err
}
