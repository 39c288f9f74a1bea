package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// What is kept is bounded in bytes and in number, and so is what one request refers to: the oldest
// answers go first.
func TestItemsAreBounded(t *testing.T) {
	const most = 10_000
	items := NewItems(most)
	ask := func(id, fields string) (*Translation, error) {
		r, err := dialect.ParseRequest(dialect.Responses, []byte(`{"model":"m",`+fields+`}`))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := NewTranslation(r, Options{Model: "m", ID: id, Items: items})
		if err == nil {
			_, err = tr.WriteAnswer(dialect.Answer{Text: strings.Repeat("x", 1000), Finish: dialect.FinishStop}, dialect.Usage{})
		}
		return tr, err
	}

	for n := range 50 {
		if _, err := ask(fmt.Sprint(n), `"input":"hi"`); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*shelf{items.shelves[previousResponse], items.shelves[itemReference]} {
		if s.bytes > most || s.bytes < most/2 || len(s.order) != len(s.held) {
			t.Errorf("%d bytes, %d of %d", s.bytes, len(s.held), len(s.order))
		}
	}
	tr, err := ask("next", `"input":"and?","previous_response_id":"resp_49"`)
	if err != nil || tr.Added < 1000 {
		t.Errorf("the newest answer is gone: %v", err)
	}
	for _, old := range []string{`"input":"and?","previous_response_id":"resp_1"`, `"input":[{"type":"item_reference","id":"msg_1"}]`, `"input":[{"id":"msg_1"}]`} {
		if _, err := ask("old", old); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "names nothing that is kept") {
			t.Errorf("%s: %v", old, err)
		}
	}
	if _, err := ask("many", `"input":[`+strings.Repeat(`{"type":"item_reference","id":"msg_49"},`, 20)+`{"role":"user","content":"?"}]`); err == nil || !strings.Contains(err.Error(), "more than 10000 bytes") {
		t.Errorf("%v", err)
	}

	s := NewItems(1).shelves[itemReference]
	for n := range maxKept + 10 {
		s.put(fmt.Sprint(n), n, 1<<30)
	}
	if len(s.held) != maxKept || len(s.order) != maxKept || s.held["9"] != nil {
		t.Errorf("%d are kept", len(s.held))
	}
}

// A provider may use the ids of its calls again: the newest item counts, and its bytes once.
func TestItemTakesPlaceOfSameID(t *testing.T) {
	s := NewItems(1).shelves[itemReference]
	for n := range 20 {
		s.put("fc_call_1", fmt.Sprint("answer ", n), 40)
	}

	if len(s.order) != 1 || s.bytes != len(s.held["fc_call_1"]) || string(s.held["fc_call_1"]) != `"answer 19"` {
		t.Errorf("%d bytes, %d entries, %s", s.bytes, len(s.order), s.held["fc_call_1"])
	}
}
