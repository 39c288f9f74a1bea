package statefile

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestFormer(t *testing.T) {
	list := []Former{{Former: "0123456789ABC", Hash: h1}, {Former: "1234567890123", Hash: h1}}
	data, err := EncodeFormer(list)
	if want := `{"former":"0123456789ABC","hash":"` + h1 + `"}` + "\n" + `{"former":"1234567890123","hash":"` + h1 + `"}` + "\n"; err != nil || string(data) != want {
		t.Fatalf("%s, %v", data, err)
	}
	if got, err := ParseFormer(data); err != nil || !reflect.DeepEqual(got, list) {
		t.Errorf("%v, %v", got, err)
	}
	for name, tc := range map[string]struct {
		list []Former
		want string
	}{
		"no former hash": {[]Former{{Former: "x", Hash: h1}}, `line 1: "x" is called`},
		"no hash":        {[]Former{list[0], {Former: "1234567890123", Hash: "../../../../../"}}, `line 2: "1234567890123" is called "../../../../../"`},
		"unsorted":       {[]Former{list[1], list[0]}, "line 2: 0123456789ABC stands after 1234567890123"},
		"twice":          {[]Former{list[0], list[0]}, "line 2: 0123456789ABC stands after 0123456789ABC"},
	} {
		if _, err := EncodeFormer(tc.list); !errors.Is(err, ErrUnstorable) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	for name, text := range map[string]string{"no JSON": "x", "no object": "[]", "blank line": "\n", "too large": strings.Repeat(" ", MaxFormerFile+1)} {
		if _, err := ParseFormer([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzFormer(f *testing.F) {
	f.Add([]byte(`{"former":"0123456789ABC","hash":"1234567890123"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseFormer(data)
		if err != nil {
			return
		}
		again, err := EncodeFormer(list)
		if err != nil || !slices.IsSortedFunc(list, func(a, b Former) int { return strings.Compare(string(a.Former), string(b.Former)) }) {
			t.Fatalf("%v, %v", list, err)
		}
		if got, err := ParseFormer(again); err != nil || !slices.Equal(got, list) {
			t.Errorf("%v, %v, want %v", got, err, list)
		}
	})
}
