package bundle

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
)

// TestCircle: records that lead back to themselves, which forged hashes could make, end.
func TestCircle(t *testing.T) {
	const h node.Hash = "0000000000001"
	c := &converter{done: map[node.Hash]node.Hash{h: ""}}
	if _, err := c.convertRecord(h); err == nil || !strings.Contains(err.Error(), "one of its own earlier attempts") {
		t.Errorf("%v", err)
	}
}
