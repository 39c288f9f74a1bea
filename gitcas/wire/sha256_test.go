package wire_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestSHA256: a repository whose objects are named by SHA-256 is refused by name, over each
// transport and in both protocol versions. Some versions of git say nothing of themselves while
// they have no refs, but before the first push.
func TestSHA256(t *testing.T) {
	for name, open := range beds() {
		for _, empty := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/empty %t", name, empty), func(t *testing.T) {
				b := open(t)
				if b.dir == "" {
					return
				}
				makeSHA256(t, b.dir, empty)

				_, err := b.remote.Atomic(t.Context()) // the first push to an empty repository needs it
				wantSHA256(t, "whether pushes are atomic", err)
				if !empty {
					_, err = b.redial().List(t.Context(), "refs/", "HEAD")
					wantSHA256(t, "list", err)
				}
			})
		}
	}
}

func makeSHA256(t *testing.T, dir string, empty bool) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	gitIn(t, ".", "init", "-q", "--bare", "--object-format=sha256", dir)
	if !empty {
		tree := gitIn(t, dir, "mktree")
		commit := gitIn(t, dir, "commit-tree", "-m", "first", tree)
		gitIn(t, dir, "update-ref", "refs/heads/main", commit)
	}
}

func wantSHA256(t *testing.T, what string, err error) {
	t.Helper()
	const want = "this repository names its objects by SHA-256, which uwf can't read yet"
	if !errors.Is(err, wire.ErrSHA256) || errors.Is(err, wire.ErrUnreadable) || wire.ErrSHA256.Error() != want {
		t.Errorf("%s: %v", what, err)
	}
}
