// Package gitservertest has what tests need of a server of package gitserver besides
// serving: empty repositories, made without a process. It is for tests.
package gitservertest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/gitcas/gitserver"
)

// Server is a running server whose folder the test may write to.
type Server struct {
	*gitserver.Server
	root string
}

// Serve starts serving the repositories below root until Close.
func Serve(root string, o gitserver.Options) (*Server, error) {
	s, err := gitserver.Serve(root, o)
	return &Server{s, root}, err
}

// Init makes an empty bare repository, whose HEAD is main, and returns its URL.
func (s *Server) Init(name string) (string, error) {
	return s.URL + "/" + name, MakeBare(s.Dir(name), "main")
}

// Dir is where the repository of that name lies.
func (s *Server) Dir(name string) string { return filepath.Join(s.root, name) }

// MakeBare makes what git init --bare makes of a folder, without hooks, in the format
// that every git reads, and without a process.
func MakeBare(dir, branch string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return fmt.Errorf("making the repository %s: %w", dir, err)
		}
	}
	for name, text := range map[string]string{
		"HEAD":   "ref: refs/heads/" + branch + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return fmt.Errorf("making the repository %s: %w", dir, err)
		}
	}
	return nil
}
