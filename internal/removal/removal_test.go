package removal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nest makes folders in one another, deeper than any path can name.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	must(t, unix.Close(fd))
}

// gone says that neither the folder is there nor what it was moved to.
func gone(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, fill := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"a file":  func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) },
		"a link to a folder": func(t *testing.T, dir string) {
			must(t, os.Symlink(outside, dir))
		},
		"files and folders": func(t *testing.T, dir string) {
			for i := range 3000 {
				at := filepath.Join(dir, fmt.Sprint(i%3), fmt.Sprint(i%7))
				must(t, os.MkdirAll(at, 0o755))
				must(t, os.WriteFile(filepath.Join(at, fmt.Sprint(i)), nil, 0o600))
			}
		},
		"links": func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
			for _, at := range []string{"l", "a/l", "a/b/l"} {
				must(t, os.Symlink(outside, filepath.Join(dir, at)))
			}
		},
		"names of its own": func(t *testing.T, dir string) {
			for i := range 5 {
				nest(t, filepath.Join(dir, "a/b", fmt.Sprint(i)), 2)
				must(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint("moved-", i), "x"), 0o755))
			}
			must(t, os.WriteFile(filepath.Join(dir, "moved-7"), nil, 0o600))
		},
		"no rights": func(t *testing.T, dir string) {
			nest(t, filepath.Join(dir, "a"), 3)
			for _, at := range []string{"a/d/d/d", "a/d/d", "a/d", "a", "."} {
				must(t, os.Chmod(filepath.Join(dir, at), 0))
			}
		},
		"special files": func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "a"), 0o755))
			must(t, unix.Mkfifo(filepath.Join(dir, "a/fifo"), 0o600))
			must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.MkdirAll(outside, 0o755))
			must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
			dir := filepath.Join(t.TempDir(), "x")
			fill(t, dir)
			must(t, Tree(context.Background(), dir, 0))
			gone(t, dir)
			if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDeep: eight thousand folders in one another take as many steps as folders, and
// few open files.
func TestDeep(t *testing.T) {
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	few := old
	few.Cur = 200
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	const depth = 8000
	dir := filepath.Join(t.TempDir(), "x")
	nest(t, dir, depth)
	must(t, Tree(context.Background(), dir, depth))
	gone(t, dir)
}

// TestBound: what is above the bound is left, and the next calls go on with it.
func TestBound(t *testing.T) {
	for name, fill := range map[string]func(dir string){
		"deep": func(dir string) { nest(t, dir, 500) },
		"wide": func(dir string) {
			for i := range 25 {
				nest(t, filepath.Join(dir, fmt.Sprint(i)), 19)
			}
		},
		"flat": func(dir string) {
			must(t, os.MkdirAll(dir, 0o755))
			for i := range 500 {
				must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			fill(dir)
			calls, err := 1, error(nil)
			for ; calls <= 100; calls++ {
				if err = Tree(context.Background(), dir, 100); !errors.Is(err, ErrLeft) {
					break
				}
				if _, err := os.Stat(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil || calls < 5 || calls > 20 {
				t.Errorf("%d calls: %v", calls, err)
			}
			gone(t, dir)
		})
	}
}

// asked is a context that counts how often it is asked.
type asked struct {
	context.Context
	n int
}

func (a *asked) Err() error {
	if a.n++; a.n > 50 {
		return context.Canceled
	}
	return nil
}

func TestEndsWithItsContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	nest(t, dir, 500)
	ctx := &asked{Context: context.Background()}
	if err := Tree(ctx, dir, 0); !errors.Is(err, context.Canceled) || ctx.n != 51 {
		t.Errorf("%v after %d looks", err, ctx.n)
	}
}
