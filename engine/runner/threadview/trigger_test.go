package threadview

import (
	"math"
	"reflect"
	"testing"
)

// A trigger is read as it was written; anything else in its place counts as not there.
func TestTrigger(t *testing.T) {
	want := Trigger{Run: "42", Number: 7, Title: "It breaks", Former: 3}
	whole := want
	whole.Event, whole.Repo, whole.Actor, whole.URL, whole.Author, whole.AuthorID = "issues", "o/r", "owner", "https://forge.example/o/r/issues/7", "ann", 9
	if got := ReadTrigger(whole.Payload()); got != want {
		t.Errorf("%+v", got)
	}
	if m := whole.Payload(); len(m) != 11 || m["actor"] != "owner" || m["authorId"] != int64(9) || m["kind"] != "issue" || m["number"] != int64(7) {
		t.Errorf("%v", m)
	}
	pull := Trigger{Run: "42", Number: 7, Pull: true, Branch: "topic"}
	if got := ReadTrigger(pull.Payload()); got != pull {
		t.Errorf("%+v", got)
	}
	for _, n := range []any{int64(-1), int64(1 << 31), int64(math.MaxInt64), 7.5, float64(7), "7", math.Inf(1), math.NaN(), nil, map[string]any{}} {
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
