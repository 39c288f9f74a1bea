package rewrite

// Small makes a plan keep nothing, so that every push is made bit by bit.
func (w *Rewriter) Small() { w.held, w.chunk = 1, 1 }
