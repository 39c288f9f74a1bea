package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/text"
)

// Items are the answers that clients of the responses API may refer to instead of sending them
// again. They are kept in memory; the oldest go first when they are too many or too large.
// Nil keeps nothing. Items are safe for several goroutines.
type Items struct {
	mu      sync.Mutex
	most    int // bytes of each shelf, and of what one request may refer to
	shelves map[string]*shelf
}

// The ways to refer to an answer, and the names of the shelves: the first stands for a whole
// conversation up to that answer, the second for one item of an answer.
const previousResponse, itemReference = "previous_response_id", "item_reference"

// maxKept is how many entries a shelf has at most.
const maxKept = 10_000

// shelf keeps JSON texts by their ids.
type shelf struct {
	held  map[string]json.RawMessage
	order []string // of ids, the oldest first
	bytes int
}

// NewItems keeps at most that many bytes of conversations, and as many of single items.
func NewItems(most int) *Items {
	newShelf := func() *shelf { return &shelf{held: map[string]json.RawMessage{}} }
	return &Items{most: most, shelves: map[string]*shelf{previousResponse: newShelf(), itemReference: newShelf()}}
}

// put keeps a value in the place of an older one of that id: some providers count their calls
// from one in each answer.
func (s *shelf) put(id string, value any, most int) {
	raw := json.RawMessage(encode(value))
	if old, again := s.held[id]; again {
		s.bytes -= len(old)
		s.order = slices.DeleteFunc(s.order, func(kept string) bool { return kept == id })
	}
	s.held[id] = raw
	s.order = append(s.order, id)

	for s.bytes += len(raw); s.bytes > most || len(s.order) > maxKept; s.order = s.order[1:] {
		s.bytes -= len(s.held[s.order[0]])
		delete(s.held, s.order[0])
	}
}

// find reads what is kept under an id, and says how large it is.
func (k *Items) find(kind, id string, to any) (size int, err error) {
	var raw json.RawMessage
	if k != nil {
		k.mu.Lock()
		raw = k.shelves[kind].held[id]
		k.mu.Unlock()
	}
	if raw == nil || text.DecodeJSON(raw, to) != nil {
		return 0, fmt.Errorf("%w: %s %.100q names nothing that is kept: the gateway keeps the newest answers of this step, "+
			"unless they were asked for with store: false; send the whole conversation as input", ErrRequest, kind, id)
	}
	return len(raw), nil
}

// resolve puts what is kept in the place of what a request refers to, so that its input is the
// whole conversation, as a list. added is how many bytes longer it is.
func (k *Items) resolve(asked object) (whole []any, added int, err error) {
	if id := textAt(asked, previousResponse); id != "" {
		if added, err = k.find(previousResponse, id, &whole); err != nil {
			return nil, 0, err
		}
	}
	if said := textAt(asked, "input"); said != "" {
		return append(whole, object{"role": "user", "content": said}), added, nil
	}

	for _, item := range listAt(asked, "input") {
		// A reference may leave out its type.
		if kind := textAt(item, "type"); kind == itemReference || kind == "" && textAt(item, "role") == "" && textAt(item, "id") != "" {
			size, err := k.find(itemReference, textAt(item, "id"), &item)
			if added += size; err == nil && added > k.most {
				err = fmt.Errorf("%w: it refers to more than %d bytes of former answers: shorten the conversation", ErrRequest, k.most)
			}
			if err != nil {
				return nil, 0, err
			}
		}
		whole = append(whole, item)
	}
	return whole, added, nil
}

// keep takes an answer to a request in the responses API, before its client has it.
func (t *Translation) keep(r dialect.Reply) {
	k, body := t.o.Items, object{}
	if t.input == nil || k == nil || text.DecodeJSON(r.Body(t.client), &body) != nil {
		return
	}
	output := listAt(body, "output")

	k.mu.Lock()
	defer k.mu.Unlock()
	for _, item := range output {
		k.shelves[itemReference].put(textAt(item, "id"), item, k.most)
	}
	k.shelves[previousResponse].put(textAt(body, "id"), append(t.input, output...), k.most)
}
