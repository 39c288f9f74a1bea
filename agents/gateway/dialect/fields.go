package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// newDecoder reads JSON as the standard library does: of two members of one name the last counts.
func newDecoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// members are those of a request's body.
type members struct {
	fields  map[string]json.RawMessage // parts of the body
	order   []string                   // the names as they come
	outside bool                       // the conversation refers to something outside of it
}

// parseMembers reads the members of a request's body, and looks through the conversation on the way.
func parseMembers(body []byte) (*members, error) {
	if err := checkShape(body); err != nil {
		return nil, err
	}

	m := &members{fields: map[string]json.RawMessage{}}
	s := scanner{raw: body, dec: newDecoder(body)}
	var long error
	err := readMembers(s.dec, func(name string) error {
		if m.fields[name] == nil {
			m.order = append(m.order, name)
		}
		s.dec.PeekKind() // passes over the space before the value
		value, err := s.readValue(slices.Contains(conversationFields, name))
		if s.entries > maxMessages {
			long = newTooLongError(name, s.entries)
		}
		m.fields[name] = value
		return err
	})
	if err == nil {
		if _, err = s.dec.ReadToken(); err == nil {
			err = errors.New("more than one JSON value")
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the body is no JSON object: %w", ErrRequest, err)
	}
	m.outside = s.outside
	return m, long
}

// readMembers reads an object. For each member it calls member, which reads the value.
func readMembers(dec *jsontext.Decoder, member func(name string) error) error {
	begin, err := dec.ReadToken()
	if err == nil && begin.Kind() != jsontext.KindBeginObject {
		err = fmt.Errorf("it begins with %s", begin.Kind())
	}
	for err == nil && dec.PeekKind() != jsontext.KindEndObject {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err == nil {
			err = member(name.String())
		}
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// joinFields writes an object: the fields in the order of these names, then the others.
func joinFields(fields map[string]json.RawMessage, order []string) json.RawMessage {
	rest, size := maps.Clone(fields), 2
	order = slices.Clone(order)
	for _, name := range order {
		delete(rest, name)
	}
	order = append(order, slices.Sorted(maps.Keys(rest))...)
	for name, value := range fields {
		size += len(name) + len(value) + 8
	}

	out := make([]byte, 0, size)
	separator := byte('{')
	for _, name := range order {
		value, ok := fields[name]
		if !ok {
			continue
		}
		out = append(out, separator)
		out = append(out, writeJSON(name)...)
		out = append(append(out, ':'), value...)
		separator = ','
	}
	if separator == '{' {
		out = append(out, separator)
	}
	return append(out, '}')
}

// scanner looks through a conversation without keeping it. Malformed JSON ends it early, and is the
// error of the decoder's next call.
type scanner struct {
	raw     []byte
	dec     *jsontext.Decoder
	entries int  // of the list that ended last
	outside bool // something was found that the provider is to fetch, or has stored
}

// readValue reads a value, and looks through it if it is a part of the conversation.
func (s *scanner) readValue(said bool) (json.RawMessage, error) {
	s.entries = 0
	if !said {
		value, err := s.dec.ReadValue()
		end := s.dec.InputOffset()
		return s.raw[int(end)-len(value) : end], err
	}
	begin := s.dec.InputOffset()
	s.outside = s.findOutside() || s.outside
	return bytes.TrimLeft(s.raw[begin:s.dec.InputOffset()], " \t\r\n,:"), nil
}

// findOutside reads one value, and says whether it refers to something outside.
func (s *scanner) findOutside() (outside bool) {
	switch s.dec.PeekKind() {
	case jsontext.KindBeginArray:
		return s.findInList()
	case jsontext.KindBeginObject:
		return s.findInObject()
	}
	_ = s.dec.SkipValue()
	return false
}

func (s *scanner) findInList() (outside bool) {
	entries := 0
	_, _ = s.dec.ReadToken()
	for k := s.dec.PeekKind(); k != jsontext.KindEndArray && k != jsontext.KindInvalid; k = s.dec.PeekKind() {
		outside = s.findOutside() || outside
		entries++
	}
	_, _ = s.dec.ReadToken()

	s.entries = entries
	return outside
}

func (s *scanner) findInObject() (outside bool) {
	begin, kind := s.dec.InputOffset(), ""
	stored := false
	_ = readMembers(s.dec, func(name string) error {
		value := s.dec.PeekKind()
		switch name {
		case "fileData", "file_data":
			stored = stored || value != jsontext.KindNull
		case "content", "output", "parts":
			outside = s.findOutside() || outside
			return nil
		case "type":
			kind = ""
			if value == jsontext.KindString {
				token, err := s.dec.ReadToken()
				kind = token.String()
				return err
			}
		}
		return s.dec.SkipValue()
	})

	switch kind {
	case "item_reference":
		return true
	case "image", "image_url", "input_image", "document", "file", "input_file", "container_upload", "video_url", "audio_url", "computer_screenshot":
		whole := bytes.TrimLeft(s.raw[begin:s.dec.InputOffset()], " \t\r\n,:")
		return stored || holdsReference(readField(whole))
	}
	return stored || outside
}

// holdsReference says whether an address, or the id of a stored file, is below v.
func holdsReference(v any) bool {
	switch x := v.(type) {
	case string:
		return strings.Contains(x[:min(len(x), 20)], "://")
	case list:
		return slices.ContainsFunc(x, holdsReference)
	case object:
		for name, e := range x {
			if name == "file_id" && asString(e) != "" || name != "text" && holdsReference(e) {
				return true
			}
		}
	}
	return false
}
