package wire

import (
	"errors"
	"fmt"
	"testing"
)

// TestBatches: batches grow to what memory should hold, and shrink if an answer is too large. What
// goes wrong otherwise ends it, and no batch is used twice.
func TestBatches(t *testing.T) {
	stop := errors.New("stop")
	for name, tc := range map[string]struct {
		size    int64 // of one thing
		tooMany int   // for one answer
		fetch   error
		use     error
		want    string
	}{
		"small things":   {1, 1000, nil, nil, "[0-2 2-18 18-38 38-50] <nil>"},
		"larger things":  {10, 1000, nil, nil, "[0-2 2-12 12-22 22-32 32-42 42-50] <nil>"},
		"a bounded wire": {1, 15, nil, nil, "[0-2 2-10 10-18 18-26 26-34 34-42 42-50] <nil>"},
		"fetch fails":    {1, 1000, stop, nil, "[] stop"},
		"use fails":      {1, 1000, nil, ErrUnreadable, "[0-2] unreadable answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var used []string
			err := Batches{First: 2, Most: 20, Bytes: 100}.Fetch(50, func(from, to int) (int64, error) {
				if to-from > tc.tooMany {
					return 0, fmt.Errorf("%w: too large", ErrUnreadable)
				}
				return tc.size * int64(to-from), tc.fetch
			}, func(from, to int) error {
				used = append(used, fmt.Sprintf("%d-%d", from, to))
				return tc.use
			})
			if got := fmt.Sprint(used, err); got != tc.want {
				t.Errorf("%s", got)
			}
		})
	}
}
