package node

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// canonical is the encoding of docs/protocol.md, "Nodes": RFC 8949 core deterministic, but with
// every number that is no integer as a float64, never shorter.
var canonical = sync.OnceValues(func() (cbor.EncMode, error) {
	return cbor.EncOptions{
		Sort:          cbor.SortBytewiseLexical,
		ShortestFloat: cbor.ShortestFloatNone,
		NaNConvert:    cbor.NaNConvertNone,
		InfConvert:    cbor.InfConvertNone,
		IndefLength:   cbor.IndefLengthForbidden,
		TagsMd:        cbor.TagsForbidden,
	}.EncMode()
})

var decoder = sync.OnceValues(func() (cbor.DecMode, error) {
	simple, err := jsonSimpleValues()
	if err != nil {
		return nil, err
	}
	return cbor.DecOptions{
		SimpleValues:          simple,
		DupMapKey:             cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:       MaxDepth + 1,
		MaxArrayElements:      MaxValues,
		MaxMapPairs:           MaxValues,
		IndefLength:           cbor.IndefLengthForbidden,
		TagsMd:                cbor.TagsForbidden,
		IntDec:                cbor.IntDecConvertSignedOrFail,
		DefaultMapType:        reflect.TypeFor[map[string]any](),
		UTF8:                  cbor.UTF8RejectInvalid,
		NaN:                   cbor.NaNDecodeForbidden,
		Inf:                   cbor.InfDecodeForbidden,
		DefaultByteStringType: reflect.TypeFor[[]byte](),
	}.DecMode()
})

// jsonSimpleValues lets false, true and null through, and no other simple value:
// the library would read undefined as null and 16 as a number.
func jsonSimpleValues() (*cbor.SimpleValueRegistry, error) {
	var refuse []func(*cbor.SimpleValueRegistry) error
	for i := range 256 {
		if i < 20 || i == 23 || i > 31 { // 20 to 22 are JSON's; 24 to 31 don't exist
			refuse = append(refuse, cbor.WithRejectedSimpleValue(cbor.SimpleValue(i)))
		}
	}
	return cbor.NewSimpleValueRegistryFromDefaults(refuse...)
}

// EncodeCBOR is the payload's canonical CBOR. It normalises the payload first.
func EncodeCBOR(v any) ([]byte, error) {
	p, err := Normalize(v)
	if err != nil {
		return nil, err
	}
	m, err := canonical()
	if err != nil {
		return nil, fmt.Errorf("set up CBOR: %w", err)
	}
	return m.Marshal(p)
}

// DecodeCBOR reads one CBOR item into a normal payload. It takes any encoding
// of a JSON value, the canonical one or another, and refuses what JSON has no
// form for: byte strings, tags, keys that are no text, duplicate keys, invalid
// UTF-8, infinities and NaN, integers beyond 64 bits, and anything after the
// item.
func DecodeCBOR(b []byte) (any, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("read CBOR: %w: %d bytes", ErrTooLarge, len(b))
	}
	m, err := decoder()
	if err != nil {
		return nil, fmt.Errorf("set up CBOR: %w", err)
	}
	var v any
	if err := m.Unmarshal(b, &v); err != nil {
		if errors.As(err, new(*cbor.ExtraneousDataError)) {
			return nil, fmt.Errorf("read CBOR: %w: more than one item", ErrPayload)
		}
		return nil, fmt.Errorf("read CBOR: %w: %w", ErrPayload, err)
	}
	p, err := Normalize(v)
	if err != nil {
		return nil, fmt.Errorf("read CBOR: %w", err)
	}
	return p, nil
}
