package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
func EncodeJSON(v any) ([]byte, error) { return encodeIndented(v, "") }

// IndentJSON is [EncodeJSON] over several lines.
func IndentJSON(v any) ([]byte, error) { return encodeIndented(v, "  ") }

func encodeIndented(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
