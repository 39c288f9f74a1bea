package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// TestFillHomeWithGoCache: an agent in a Go module begins with a copy of what this machine has
// compiled, and nobody else does.
func TestFillHomeWithGoCache(t *testing.T) {
	for name, c := range map[string]struct {
		variable string // that names the cache, below the home
		file     string // that the folder has
		job      bool
		want     bool
	}{
		"a module":            {"", "go.mod", false, true},
		"moved by XDG":        {"XDG_CACHE_HOME", "go.mod", false, true},
		"moved by Go":         {"GOCACHE", "go.mod", false, true},
		"no module":           {"", "package.json", false, false},
		"in a job":            {"", "go.mod", true, false},
		"relative, or nobody": {"off", "go.mod", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			machine, dir, home := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "home")
			environ, cache := []string{"HOME=" + machine}, filepath.Join(machine, ".cache", "go-build")
			switch c.variable {
			case "XDG_CACHE_HOME":
				environ, cache = append(environ, "XDG_CACHE_HOME="+machine+"/x"), filepath.Join(machine, "x", "go-build")
			case "GOCACHE":
				environ, cache = append(environ, "GOCACHE="+machine+"/g"), filepath.Join(machine, "g")
			case "off":
				environ = append(environ, "GOCACHE=off")
			}
			for _, file := range []string{filepath.Join(cache, "aa", "x-a"), filepath.Join(dir, c.file)} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("1"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			w := &Worker{f: &app.Factory{Environ: environ}, folder: &folder{dir: dir}}
			if c.job {
				w.f.Job = &app.Job{}
			}
			if err := w.fillHome(t.Context(), home, ""); err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(home, ".cache", "go-build", "aa", "x-a")
			if _, err := os.Stat(copied); (err == nil) != c.want {
				t.Errorf("%v", err)
			}
			if !c.want {
				return
			}
			if err := os.WriteFile(copied, []byte("poison"), 0o600); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(filepath.Join(cache, "aa", "x-a")); err != nil || string(b) != "1" {
				t.Errorf("the machine's own is %q %v", b, err)
			}
		})
	}
}

// TestGoCacheNewest: what Go used last of a large cache is copied, as much as may be.
func TestGoCacheNewest(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "newest", "newer"} {
		path := filepath.Join(dir, "aa", name)
		used := time.Now().Add(-time.Hour * time.Duration([]int{3, 1, 2}[i]))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, 10), 0o600), os.Chtimes(path, used, used)); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int64]string{9: "", 10: "aa/newest", 29: "aa/newest aa/newer", 30: "aa/newest aa/newer aa/old"} {
		if got := strings.Join(listLastUsed(dir, most), " "); got != want {
			t.Errorf("%d bytes: %q, want %q", most, got, want)
		}
	}
	if got := listLastUsed(filepath.Join(dir, "missing"), 9); got != nil {
		t.Error(got)
	}
}
