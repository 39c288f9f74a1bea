package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// object and list are JSON values as decode returns them.
type (
	object = map[string]any
	list   = []any
)

// decode reads exactly one JSON value and keeps numbers as they are written.
func decode(b []byte) (any, error) {
	var v any
	if err := decodeInto(b, &v); err != nil {
		return nil, err
	}
	return v, nil
}

func decodeInto(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// encode writes a value without escaping <, > and & (the text stays readable)
// and without the newline that json.Encoder adds.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// The readers below answer with the zero value where a field is missing or has
// another type: a provider that sends less than it should is not a reason to
// fail a request.

func obj(v any) object {
	o, _ := v.(object)
	return o
}

func arr(v any) list {
	l, _ := v.(list)
	return l
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func num(v any) json.Number {
	n, _ := v.(json.Number)
	return n
}

func intOf(v any) int {
	n, err := strconv.Atoi(string(num(v)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// empty says whether a field carries nothing: absent, null, "", [], {} or false.
func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case list:
		return len(x) == 0
	case object:
		return len(x) == 0
	case bool:
		return !x
	}
	return false
}

// only says whether an object carries nothing but the given keys.
func only(o object, keys ...string) bool {
next:
	for k, v := range o {
		if empty(v) {
			continue
		}
		for _, known := range keys {
			if k == known {
				continue next
			}
		}
		return false
	}
	return true
}

// Texts calls visit for every text in a JSON value, with the path that leads to
// it. Text that is no JSON has none.
func Texts(jsonText []byte, visit func(path, text string)) {
	v, err := decode(jsonText)
	if err != nil {
		return
	}
	texts("", v, visit)
}

func texts(path string, v any, visit func(path, text string)) {
	switch x := v.(type) {
	case string:
		visit(path, x)
	case list:
		for i, e := range x {
			texts(path+"/"+strconv.Itoa(i), e, visit)
		}
	case object:
		for k, e := range x {
			texts(path+"/"+k, e, visit)
		}
	}
}
