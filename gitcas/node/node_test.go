package node

import (
	"errors"
	"testing"
)

// broken is a place that can't be read.
type broken struct{ error }

func (b broken) Get(Hash) (Node, error) { return Node{}, b.error }

// The first place that has a node is asked for it. One that can't be read may be the one
// that has it: the next one's is not taken instead.
func TestFirst(t *testing.T) {
	const h = Hash("AAAAAAAAAAAAA")
	torn := errors.New("torn")
	one, two := Map{h: {Payload: "one"}}, Map{h: {Payload: "two"}}
	for name, c := range map[string]struct {
		in   First
		want any
		err  error
	}{
		"none at all":   {nil, nil, ErrNotFound},
		"in none":       {First{Map{}, Map{}}, nil, ErrNotFound},
		"in the first":  {First{one, two}, "one", nil},
		"in the second": {First{Map{}, two}, "two", nil},
		"can't be read": {First{broken{torn}, two}, nil, torn},
		"is not got to": {First{one, broken{torn}}, "one", nil},
	} {
		n, err := c.in.Get(h)
		if n.Payload != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, n.Payload, err)
		}
	}
}
