package jobcache

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/cachetest"
)

const key = "uwf-store-0123"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open is the cache of a job of GitHub's.
func open(t *testing.T, s *cachetest.Server) *Cache {
	t.Helper()
	c, ok := Open(s.Environ(true), nil)
	if !ok {
		t.Fatal("there is no cache")
	}
	return c
}

func TestOpen(t *testing.T) {
	s := cachetest.Start(t)
	const token, v1, v2 = "ACTIONS_RUNTIME_TOKEN=t", "ACTIONS_CACHE_URL=http://one/", "ACTIONS_RESULTS_URL=http://two/"
	for name, c := range map[string]struct {
		environ []string
		want    bool
	}{
		"none":                     {nil, false},
		"a token":                  {[]string{token, "ACTIONS_CACHE_SERVICE_V2=True"}, false},
		"no token":                 {[]string{v1, v2, "ACTIONS_CACHE_SERVICE_V2=True"}, false},
		"version 1":                {[]string{token, v1}, false},
		"version 2":                {[]string{token, v2, "ACTIONS_CACHE_SERVICE_V2=True"}, true},
		"version 2, false":         {[]string{token, v2, "ACTIONS_CACHE_SERVICE_V2=false"}, false},
		"GitHub, unnamed":          {[]string{token, v1, v2, "GITHUB_SERVER_URL=https://github.com"}, true},
		"GitHub with data at home": {[]string{token, v2, "GITHUB_SERVER_URL=https://octo.ghe.com"}, true},
		"GitHub's namesake":        {[]string{token, v2, "GITHUB_SERVER_URL=https://github.com.example"}, false},
		"Gitea":                    {append(s.Environ(false), "GITHUB_SERVER_URL=https://gitea.example"), false},
		"Gitea without a cache":    {[]string{token, v2, "GITHUB_SERVER_URL=https://gitea.example"}, false},
	} {
		got, ok := Open(c.environ, nil)
		if ok != c.want || ok && (got.url != "http://two/" || got.token != "t") {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
}

// fill makes an image of a commit in a folder.
func fill(t *testing.T, dir string) string {
	t.Helper()
	image := filepath.Join(dir, "c0ffee")
	must(t, errors.Join(os.MkdirAll(filepath.Join(image, "home/.cache/empty"), 0o755), os.MkdirAll(filepath.Join(image, "tree/node_modules/m"), 0o700)))
	noise := make([]byte, 5<<20) // more than one block
	_, err := rand.Read(noise)
	must(t, errors.Join(err, os.WriteFile(filepath.Join(image, "home/big"), noise, 0o640), //nolint:gosec // its mode is looked at
		os.WriteFile(filepath.Join(image, "tree/node_modules/m/run"), []byte("#!"), 0o755), //nolint:gosec // a program
		os.Symlink("/usr/bin/python3", filepath.Join(image, "tree/python")), os.Symlink("m/run", filepath.Join(image, "tree/node_modules/.bin")),
		os.WriteFile(filepath.Join(image, "tree/closed"), []byte("1"), 0o444))) //nolint:gosec // its mode is looked at
	old := time.Unix(1_700_000_000, 0)
	must(t, errors.Join(os.Chmod(image, 0o700), os.Chmod(filepath.Join(image, "tree/node_modules/m/run"), 0o755|fs.ModeSetuid))) //nolint:gosec // a folder
	must(t, filepath.WalkDir(image, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
	return image
}

// describe lists what is in a folder.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		must(t, err)
		line := fmt.Sprint(strings.TrimPrefix(path, dir), " ", info.Mode()&(fs.ModeType|fs.ModePerm))
		switch target, _ := os.Readlink(path); info.Mode().Type() {
		case fs.ModeSymlink:
			line += " -> " + target
		case 0:
			text, err := os.ReadFile(path)
			must(t, err)
			line += fmt.Sprintf(" %s %x", info.ModTime(), text)
		}
		out = append(out, line)
		return nil
	}))
	return strings.Join(out, "\n")
}

// TestSaveAndLoad: what was saved is there again, with modes and the times of files, and under its own name;
// rights beyond reading, writing and running are not.
func TestSaveAndLoad(t *testing.T) {
	s := cachetest.Start(t)
	c := open(t, s)
	from, into := t.TempDir(), t.TempDir()
	if found, err := c.Load(t.Context(), key, into, "home", "tree"); found || err != nil {
		t.Fatal(found, err)
	}
	image := fill(t, from)
	must(t, c.Save(t.Context(), key, image))
	found, err := c.Load(t.Context(), key, into, "home", "tree")
	if want, got := describe(t, from), describe(t, into); !found || err != nil || got != want {
		t.Errorf("%v %v: %d and %d bytes", found, err, len(got), len(want))
	}
	if info, err := os.Stat(filepath.Join(into, "c0ffee/tree/node_modules/m/run")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info, err)
	}
	// Whoever has it already keeps it.
	must(t, os.WriteFile(filepath.Join(into, "c0ffee/mine"), nil, 0o600))
	found, err = c.Load(t.Context(), key, into, "home", "tree")
	if _, serr := os.Stat(filepath.Join(into, "c0ffee/mine")); found || err == nil || serr != nil {
		t.Error(found, err, serr)
	}
	// A key that exists stays as it is, and that is no error.
	before := s.Entries()[key]
	must(t, os.WriteFile(filepath.Join(image, "home/more"), nil, 0o600))
	if err := c.Save(t.Context(), key, image); err != nil || len(s.Entries()) != 1 || !bytes.Equal(s.Entries()[key], before) {
		t.Error(err)
	}
	for _, dir := range []string{from, into} { // no halves
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Error(entries, err)
		}
	}
}

// TestKeyIsExact: the services give an entry whose key only begins so.
func TestKeyIsExact(t *testing.T) {
	c := open(t, cachetest.Start(t))
	must(t, c.Save(t.Context(), key+"4", fill(t, t.TempDir())))
	into := t.TempDir()
	found, err := c.Load(t.Context(), key, into, "home", "tree")
	if entries, rerr := os.ReadDir(into); found || err != nil || rerr != nil || len(entries) != 0 {
		t.Error(found, err, entries)
	}
}

// TestFailures: each is an error on one short line, and tells nothing that grants access.
func TestFailures(t *testing.T) {
	status := func(on string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, on) {
				return false
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request) bool { return r.Context().Err() == nil }
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"forbidden":     status("", http.StatusForbidden, `{"message": "no"}`),
		"broken":        status("", http.StatusInternalServerError, "<html>\x1b[31m\n"+strings.Repeat("x", 5000)),
		"too often":     status("", http.StatusTooManyRequests, `{"message": "slow down"}`),
		"no such thing": status("", http.StatusNotFound, ""),
		"not JSON":      status("", http.StatusOK, "hello"),
		"data is gone":  status("/data/", http.StatusNotFound, ""),
		"data denied":   status("/data/", http.StatusForbidden, ""),
		"not kept": func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/FinalizeCacheEntryUpload") || strings.HasPrefix(r.URL.Path, "/data/") && r.Method == http.MethodGet {
				_, _ = w.Write([]byte(`{"ok": false}`))
				return true
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := cachetest.Start(t)
			c := open(t, s)
			image, into := fill(t, t.TempDir()), t.TempDir()
			must(t, c.Save(t.Context(), key, image))
			s.Fail(fail)
			found, err := c.Load(t.Context(), key, into, "home", "tree")
			checkFailure(t, s, found, err)
			checkFailure(t, s, false, c.Save(t.Context(), key+"0", image))
			if entries, err := os.ReadDir(into); err != nil || len(entries) != 0 || len(s.Entries()) != 1 {
				t.Error(entries, err, len(s.Entries()))
			}
		})
	}
	s := cachetest.Start(t)
	c := open(t, s)
	s.Fail(hang)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Load(over, key, t.TempDir())
	checkFailure(t, s, false, err)
	checkFailure(t, s, false, c.Save(over, key, fill(t, t.TempDir())))
	s.Close()
	_, err = c.Load(t.Context(), key, t.TempDir())
	checkFailure(t, s, false, err)
	foreign, _ := Open([]string{"ACTIONS_RUNTIME_TOKEN=another", "ACTIONS_RESULTS_URL=" + cachetest.Start(t).URL, "ACTIONS_CACHE_SERVICE_V2=true"}, nil)
	_, err = foreign.Load(t.Context(), key, t.TempDir())
	checkFailure(t, s, false, err)
	checkFailure(t, s, false, foreign.Save(t.Context(), key, fill(t, t.TempDir())))
}

func checkFailure(t *testing.T, s *cachetest.Server, found bool, err error) {
	t.Helper()
	if found || err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "sig=") || strings.Contains(err.Error(), s.Token) {
		t.Errorf("%v %v", found, err)
	}
}

// packed is an archive of entries by the name "c".
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	return packedAs(t, "c", headers...)
}

// packedAs is one by another name. A file that claims to be large has nothing in it.
func packedAs(t *testing.T, name string, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Name = name
	w := tar.NewWriter(z)
	for _, h := range headers {
		h.Mode |= 0o700
		must(t, w.WriteHeader(&h))
		if h.Size > 0 && h.Size < 1<<20 {
			_, err := w.Write(make([]byte, h.Size))
			must(t, err)
		}
	}
	_ = w.Close() // a file is not whole
	must(t, z.Close())
	return b.Bytes()
}

// TestHostileArchives: nothing of them stays, nothing is touched outside.
func TestHostileArchives(t *testing.T) {
	outside := t.TempDir()
	dir := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	image := []tar.Header{dir("home"), dir("tree")}
	with := func(more ...tar.Header) []byte { return packed(t, append(slices.Clone(image), more...)...) }
	good := with(file("tree/x"))
	var plain bytes.Buffer
	must(t, tar.NewWriter(&plain).Close())
	for name, data := range map[string][]byte{
		"empty":                   nil,
		"no archive":              []byte("hello"),
		"not packed":              plain.Bytes(),
		"nothing in it":           packed(t),
		"cut off":                 good[:len(good)/2],
		"no sum":                  good[:len(good)-8],
		"another sum":             append(slices.Clone(good[:len(good)-8]), "12345678"...),
		"no name":                 packedAs(t, "", image...),
		"hidden":                  packedAs(t, ".c", image...),
		"the folder itself":       packedAs(t, ".", image...),
		"the folder above":        packedAs(t, "..", image...),
		"beside the folder":       packedAs(t, "../c", image...),
		"an absolute name":        packedAs(t, "/c", image...),
		"a name below":            packedAs(t, "a/c", image...),
		"the name of a file":      packedAs(t, "lock", image...),
		"a part missing":          packed(t, dir("home")),
		"a part is a link":        packed(t, dir("home"), link("tree", outside)),
		"a part is a file":        packed(t, dir("home"), file("tree")),
		"the root again":          with(dir(".")),
		"leads out":               with(file("../x")),
		"leads out from below":    with(file("home/../../../x")),
		"leads around":            with(file("home/../x")),
		"a folder leads out":      with(dir("../../x")),
		"absolute":                with(file(filepath.Join(outside, "x"))),
		"absolute link":           with(link(filepath.Join(outside, "x"), "y")),
		"through a link":          with(link("tree/l", outside), file("tree/l/x")),
		"through a link inside":   with(link("tree/l", "../home"), file("tree/l/x")),
		"onto a link":             with(link("tree/l", filepath.Join(outside, "x")), file("tree/l")),
		"a folder onto a link":    with(link("tree/l", outside), dir("tree/l"), file("tree/l/x")),
		"a link onto a folder":    with(dir("tree/l"), link("tree/l", outside), file("tree/l/x")),
		"twice":                   with(file("tree/x"), file("tree/x")),
		"in no folder":            with(file("tree/none/x")),
		"below a file":            with(file("tree/x"), file("tree/x/y")),
		"a device":                with(tar.Header{Typeflag: tar.TypeChar, Name: "tree/x", Devmajor: 1, Devminor: 3}),
		"a pipe":                  with(tar.Header{Typeflag: tar.TypeFifo, Name: "tree/x"}),
		"a hard link":             with(tar.Header{Typeflag: tar.TypeLink, Name: "tree/x", Linkname: "/etc/passwd"}),
		"claims to be huge":       with(tar.Header{Typeflag: tar.TypeReg, Name: "tree/x", Size: 1<<63 - 1, Format: tar.FormatPAX}),
		"claims more than it has": with(tar.Header{Typeflag: tar.TypeReg, Name: "tree/x", Size: 1 << 20}),
	} {
		t.Run(name, func(t *testing.T) {
			s, into := cachetest.Start(t), t.TempDir()
			s.Put(key, data)
			must(t, os.WriteFile(filepath.Join(into, "lock"), nil, 0o600)) // as folders of images have
			found, err := open(t, s).Load(t.Context(), key, into, "home", "tree")
			if entries, rerr := os.ReadDir(into); found || err == nil || rerr != nil || len(entries) != 1 {
				t.Errorf("%v %v, left: %v", found, err, entries)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
				t.Errorf("outside: %v %v", entries, err)
			}
		})
	}
	s, into := cachetest.Start(t), t.TempDir()
	s.Put(key, good)
	if found, err := open(t, s).Load(t.Context(), key, into, "home", "tree"); !found || err != nil {
		t.Errorf("the good one: %v %v", found, err)
	}
}

// TestBounds of all entries together: each of them alone would do.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		size int64 // of each of three files
		most limits
		ok   bool
	}{
		"enough":           {2000, limits{6000, 3}, true},
		"too many bytes":   {2000, limits{5999, 3}, false},
		"too many entries": {2000, limits{6000, 2}, false},
		"headers":          {0, limits{600, 3}, false},
	} {
		file := func(name string) tar.Header {
			return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: c.size}
		}
		data := packed(t, file("a"), file("b"), file("c"))
		if _, err := unpackFolder(bytes.NewReader(data), filepath.Join(t.TempDir(), "none"), nil, c.most); err == nil {
			t.Errorf("%s: into no folder", name)
		}
		got, err := unpackFolder(bytes.NewReader(data), t.TempDir(), nil, c.most)
		if (err == nil) != c.ok || c.ok != (got == "c") {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

// TestSaveRefuses what is not there.
func TestSaveRefuses(t *testing.T) {
	s := cachetest.Start(t)
	checkFailure(t, s, false, open(t, s).Save(t.Context(), key, filepath.Join(t.TempDir(), "none")))
	if asked := s.TakeRequests(); len(asked) != 0 {
		t.Error(asked)
	}
}
