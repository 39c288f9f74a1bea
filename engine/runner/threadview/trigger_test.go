package threadview

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

// A trigger is read as it was written; anything else in its place counts as not there.
func TestTrigger(t *testing.T) {
	want := Trigger{Event: "issues", Repo: "o/r", Actor: "owner", URL: "https://forge.example/o/r/issues/7", Run: "42", Number: 7, Title: "It breaks"}
	if got := ReadTrigger(want.Payload()); got != want {
		t.Errorf("%+v", got)
	}
	pull := Trigger{Event: "pull_request", Run: "42", Number: 7, Pull: true, Branch: "topic"}
	if got := ReadTrigger(pull.Payload()); got != pull {
		t.Errorf("%+v", got)
	}
	for _, n := range []any{float64(7), json.Number("7"), int(7), uint64(7)} {
		if got := ReadTrigger(map[string]any{"number": n}); got.Number != 7 {
			t.Errorf("%T is read as %d", n, got.Number)
		}
	}
	for _, n := range []any{-1, 7.5, "7", math.Inf(1), math.NaN(), uint64(math.MaxUint64), json.Number("x"), nil, map[string]any{}} {
		if got := ReadTrigger(map[string]any{"number": n, "event": 1, "kind": []any{}}); !reflect.DeepEqual(got, Trigger{}) {
			t.Errorf("%v is read as %+v", n, got)
		}
	}
}

func TestAbout(t *testing.T) {
	for key, want := range map[string]bool{
		"two/issue/7": true, "two/issue/7/fork/3": true, "two/issue/77": false, "two/pr/7": false, "run/7": false, "issue/7": false, "": false,
	} {
		if got := IsAbout(key, SubjectKey(false, 7)); got != want {
			t.Errorf("About(%q) is %v", key, got)
		}
	}
}
