package rewrite

// Small makes a plan keep nothing, so that every push is made bit by bit.
func (w *Rewriter) Small() { w.held, w.chunk = 1, 1 }

// Holds makes a plan keep at most so many bytes for its push.
func (w *Rewriter) Holds(n int64) { w.held = n }
