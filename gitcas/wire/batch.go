package wire

import "errors"

// Batches bounds how many of a row of things are fetched at once.
type Batches struct {
	First int   // of which nothing is known
	Most  int   // in any batch
	Bytes int64 // that memory should hold of one
}

// Fetch has n things fetched batch by batch. Each batch is as large as the sizes in the one before
// allow, at most eight times as large as that one, and smaller if an answer would be too large
// (ErrUnreadable). fetch returns how many bytes it held; then use works on what came. Fetch returns
// the first other error of either.
func (b Batches) Fetch(n int, fetch func(from, to int) (int64, error), use func(from, to int) error) error {
	size, most := b.First, b.Most
	for from := 0; from < n; {
		to := min(from+size, n)
		held, err := fetch(from, to)
		switch {
		case errors.Is(err, ErrUnreadable) && to-from > 1:
			size = (to - from) / 2
			most = size
		case err != nil:
			return err
		default:
			if err := use(from, to); err != nil {
				return err
			}
			fit := int64(to-from) * b.Bytes / max(held, 1)
			size = int(min(max(fit, 1), int64(most), int64(8*size)))
			from = to
		}
	}
	return nil
}
