// Package conventions reads what a repository says of how it is worked on, from the commit that
// a thread's work began from. It never reads what agents wrote.
package conventions

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Repository reads the commit that the work of a thread began from. Agents are told of that
// one alone: the work branch is what agents wrote.
type Repository interface {
	// ReadFile reads a regular file of a commit, of at most limit bytes. Nil: the commit has
	// no such file, or it is larger.
	ReadFile(ctx context.Context, commit wire.ID, path string, limit int64) ([]byte, error)
	// ListFiles lists the regular files of a commit by their paths, sorted.
	ListFiles(ctx context.Context, commit wire.ID) ([]string, error)
	// Expect has what is needed of a commit come along with what is fetched next.
	Expect(commit wire.ID)
}

// maxConvention bounds a file with the repository's conventions, in bytes.
const maxConvention = 1 << 20

// Read reads the conventions of a commit and, where they are wanted, the paths of its files. The
// error wraps wire.ErrNotFound where the commit is gone.
func Read(ctx context.Context, r Repository, base wire.ID, withFiles bool) (found []prompt.Convention, files []string, err error) {
	found, err = prompt.PickConventions(func(name string) ([]byte, error) {
		return r.ReadFile(ctx, base, name, maxConvention)
	})
	if err == nil && withFiles {
		files, err = r.ListFiles(ctx, base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the repository's conventions: %w", err)
	}
	return found, files, nil
}
