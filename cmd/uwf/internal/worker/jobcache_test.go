package worker

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/cachetest"
)

// TestLoadImage: a CI job without images asks its cache for one, and keeps one there only where the
// cache had none. One of another commit is where the commands begin.
func TestLoadImage(t *testing.T) {
	const other = "c0ffee0000000000000000000000000000000000"
	for name, c := range map[string]struct {
		person, gitea, have, cached, down bool
		asks, found, saves, notice        bool
	}{
		"a job":                    {asks: true, saves: true},
		"a person":                 {person: true},
		"a job of Gitea":           {gitea: true},
		"a job with an image":      {have: true},
		"an image of other commit": {cached: true, asks: true, found: true},
		"a cache that is down":     {down: true, asks: true, notice: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := cachetest.Start(t), t.TempDir()
			var notices []string
			w := &Worker{f: app.NewAt(root, append(s.Environ(!c.gitea), "UWF_LOG=off"), app.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}), folder: &folder{thread: "T"}}
			w.o.Observe = func(e thread.Event) {
				if e.Kind == "notice" && e.Thread == "T" {
					notices = append(notices, e.Text)
				}
			}
			w.f.Job = &app.Job{}
			p := newPreparer(w, nil, root, "url")
			image := func(folder, commit string) string {
				image := filepath.Join(folder, commit)
				if err := errors.Join(os.MkdirAll(filepath.Join(image, imageHome), 0o700), os.MkdirAll(filepath.Join(image, imageTree), 0o700),
					os.WriteFile(filepath.Join(image, imageHome, "cache"), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				return image
			}
			folder := filepath.Join(p.root(), "0123")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.cached {
				p.image = image(t.TempDir(), other)
				p.loadImage(t.Context(), folder, "0123")()
			}
			if c.have {
				image(folder, other)
			}
			if c.person {
				w.f.Job = nil
			}
			if c.down {
				s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				})
			}
			before := len(s.Entries())
			s.TakeRequests()
			save := p.loadImage(t.Context(), folder, "0123")
			if asked := len(s.TakeRequests()) > 0; asked != c.asks {
				t.Errorf("asked: %v", asked)
			}
			found := findImages(folder)
			if _, err := os.Stat(filepath.Join(folder, other, imageHome, "cache")); (err == nil) != (c.found || c.have) || c.found && !slices.Equal(found, []string{other}) {
				t.Errorf("found: %v %v", found, err)
			}
			p.image = image(folder, "decade0000000000000000000000000000000000")
			save()
			if _, ok := s.Entries()["uwf-"+p.store+"-0123"]; len(s.Entries()) > before != c.saves || c.saves && !ok {
				t.Errorf("saved: %v", s.Entries())
			}
			if (len(notices) == 1) != c.notice || len(notices) > 1 {
				t.Errorf("told: %q", notices)
			}
		})
	}
}
