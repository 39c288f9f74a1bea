package ci

import (
	"fmt"
	"testing"
)

func TestParseWanted(t *testing.T) {
	for text, want := range map[string]Wanted{"": {}, " True ": {}, "FALSE": {Off: true}, "0": {}, "17": {ID: 17}} {
		if got, err := ParseWanted(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"yes", "-1", "17x", "1.5", "99999999999999999999"} {
		if got, err := ParseWanted(text); err == nil || got != (Wanted{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// What toJSON(needs) gives.
func TestParseNeeds(t *testing.T) {
	got, err := ParseNeeds(`{"step": {"result": "failure", "outputs": {"ran": "true"}}, "agent": {"result": "cancelled", "outputs": {}}}`)
	if want := fmt.Sprint([]Needed{{Name: "agent", Result: "cancelled"}, {Name: "step", Result: "failure", Ran: true}}); err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v %v, want %s", got, err, want)
	}
	if got, err := ParseNeeds(" "); got != nil || err != nil {
		t.Errorf("%v %v", got, err)
	}
	for _, wrong := range []string{"step", "[]", `{"step": 1}`} {
		if _, err := ParseNeeds(wrong); err == nil {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
