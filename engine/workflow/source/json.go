package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// readJSON reads an included JSON file. A nil result has been reported.
func (r *reader) readJSON(name string, data []byte) *Value {
	src := newFile(name, data)
	if !r.admitFile(src, data) {
		return nil
	}
	j := &jsonReader{r: r, src: src, data: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1, col: 1}
	j.dec = json.NewDecoder(bytes.NewReader(j.data))
	j.dec.UseNumber()
	v, ok := j.readValue(0)
	if !ok {
		return nil
	}
	after := j.nextPos()
	if _, err := j.dec.Token(); !errors.Is(err, io.EOF) {
		r.problems.Add(after, 1, "keep one value in the file", "there is something after the JSON value")
		return nil
	}
	return v
}

// jsonReader walks the tokens of a JSON file and keeps track of places.
type jsonReader struct {
	r         *reader
	src       *file
	data      []byte
	dec       *json.Decoder
	offset    int // of line and col
	line, col int
}

// nextPos is the place of the next token.
func (j *jsonReader) nextPos() Pos {
	at := int(j.dec.InputOffset())
	for at < len(j.data) && strings.IndexByte(" \t\r\n,:", j.data[at]) >= 0 {
		at++
	}
	for j.offset < at {
		c, size := utf8.DecodeRune(j.data[j.offset:])
		j.offset += size
		switch {
		case c == '\r' && j.offset < len(j.data) && j.data[j.offset] == '\n': // counted with the \n
		case isBreak(c):
			j.line, j.col = j.line+1, 1
		default:
			j.col++
		}
	}
	return Pos{j.src, j.line, j.col}
}

func (j *jsonReader) failAt(at Pos, err error) (*Value, bool) {
	j.r.problems.Add(at, 1, "check quotes, commas and brackets here and before", "not valid JSON: %v", err)
	return nil, false
}

func (j *jsonReader) readValue(depth int) (*Value, bool) {
	at := j.nextPos()
	tok, err := j.dec.Token()
	if err != nil {
		return j.failAt(at, err)
	}
	if j.r.values++; depth > maxDepth || j.r.values > maxValues {
		return j.failAt(at, errors.New("too large or nested too deep"))
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return j.readObject(at, depth)
		}
		return j.readList(at, depth)
	case json.Number:
		s, ok := scalarOf(tok.String())
		if !ok {
			return j.failAt(at, errors.New("the number is out of range"))
		}
		return &Value{Kind: KindScalar, Pos: at, Scalar: s, Text: tok.String()}, true
	case string:
		return &Value{Kind: KindScalar, Pos: at, Scalar: tok, Text: tok}, true
	default: // nil, bool
		return &Value{Kind: KindScalar, Pos: at, Scalar: tok}, true
	}
}

func (j *jsonReader) readList(at Pos, depth int) (*Value, bool) {
	v := &Value{Kind: KindList, Pos: at}
	for j.dec.More() {
		e, ok := j.readValue(depth + 1)
		if !ok {
			return nil, false
		}
		v.Items = append(v.Items, e)
	}
	if _, err := j.dec.Token(); err != nil {
		return j.failAt(j.nextPos(), err)
	}
	return v, true
}

func (j *jsonReader) readObject(at Pos, depth int) (*Value, bool) {
	v := &Value{Kind: KindMap, Pos: at}
	first := map[string]Pos{}
	for j.dec.More() {
		keyAt := j.nextPos()
		tok, err := j.dec.Token()
		if err != nil {
			return j.failAt(keyAt, err)
		}
		key, _ := tok.(string) // the decoder lets nothing else be a key
		e, ok := j.readValue(depth + 1)
		if !ok {
			return nil, false
		}
		if before, dup := first[key]; dup {
			j.r.problems.Add(keyAt, len(key)+2, "remove one of the two, or rename it",
				"duplicate key %q: it stands on line %d already", key, before.line)
			continue
		}
		first[key] = keyAt
		v.Entries = append(v.Entries, Entry{Key: key, Pos: keyAt, Val: e})
	}
	if _, err := j.dec.Token(); err != nil {
		return j.failAt(j.nextPos(), err)
	}
	return v, true
}
