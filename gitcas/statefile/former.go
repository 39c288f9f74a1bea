package statefile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/node"
)

// MaxFormerFile is the largest list of former hashes that is read or written, in bytes.
const MaxFormerFile = 32 << 20

// Former is what a node is called here that had another hash where it was imported from.
type Former struct {
	Former node.Hash `json:"former"`
	Hash   node.Hash `json:"hash"`
}

// EncodeFormer writes a list of former hashes, which must be sorted by these, one a line.
// The error matches ErrUnstorable.
func EncodeFormer(list []Former) ([]byte, error) {
	var out bytes.Buffer
	for _, f := range list {
		fmt.Fprintf(&out, "{\"former\":%q,\"hash\":%q}\n", f.Former, f.Hash)
	}
	if _, err := ParseFormer(out.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnstorable, err)
	}
	return out.Bytes(), nil
}

// ParseFormer reads a list of former hashes. Errors name the line and match ErrMalformed.
func ParseFormer(data []byte) ([]Former, error) {
	if len(data) > MaxFormerFile {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(data), MaxFormerFile)
	}
	var out []Former
	for line := range bytes.Lines(data) {
		var f Former
		err := json.Unmarshal(line, &f)
		switch n := len(out); {
		case err != nil:
		case !f.Former.Valid() || !f.Hash.Valid():
			err = fmt.Errorf("%.40q is called %.40q: these are no two hashes", f.Former, f.Hash)
		case n > 0 && out[n-1].Former >= f.Former:
			err = fmt.Errorf("%s stands after %s: the lines are not sorted, or one is there twice", f.Former, out[n-1].Former)
		}
		if err != nil {
			return nil, newMalformedError(len(out)+1, "%v", err)
		}
		out = append(out, f)
	}
	return out, nil
}
