package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/copytree"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

const (
	// maxSubmodules bounds how many submodules a folder gets, those of submodules included.
	maxSubmodules = 100
	// maxNesting bounds how deep submodules lie in one another.
	maxNesting = 5
	// maxModules bounds a .gitmodules file, in bytes.
	maxModules = 1 << 20
	// submoduleTime bounds how long it may take to fetch those of a folder.
	submoduleTime = 15 * time.Minute
)

// gitmodules is the file with the addresses of submodules, see gitmodules(5).
const gitmodules = ".gitmodules"

// submodules puts the files of a commit's submodules into folders. It keeps a copy of each below
// the storage root, beside the images of prepared workspaces.
type submodules struct {
	w      *Worker
	images string  // of this store
	url    string  // of the repository; empty: unknown
	base   wire.ID // what the thread began from
	// laid and missing are the paths of those that the agents' folder has, and lacks.
	laid, missing []string
}

// newSubmodules makes them for a store. Relative addresses in .gitmodules begin at the state's
// remote or, if threads are kept in the repository, at origin.
func newSubmodules(ctx context.Context, w *Worker, images string, loc app.Location) *submodules {
	s := &submodules{w: w, images: images, url: loc.URL}
	if loc.Kind != app.RemoteStore {
		s.url, _ = w.f.RemoteURL(ctx, "origin") // without it, relative addresses fail
	}
	return s
}

// fillFolder fills the folder of a thread that began from base. Then it restores the folder once more:
// this lists the submodules that stay empty, and the filled ones, in which changes are named.
func (s *submodules) fillFolder(ctx context.Context, f *folder, commit, base wire.ID) error {
	s.base = base
	done, err := s.fillSubmodules(ctx, f.ws, f.dir, commit)
	s.laid = done.filled
	s.missing = lists.Map(done.failed, func(l workspace.LeftOut) string { return l.Path })
	if err != nil || len(done.filled)+len(done.failed) == 0 {
		return err
	}
	f.ws.NoteFilled(done.filled, done.failed)
	return f.ws.Restore(ctx, commit)
}

// copyTo puts the files of a commit into another folder, which is empty, with its submodules.
func (f *folder) copyTo(ctx context.Context, commit wire.ID, dir string) error {
	if err := f.ws.CopyTo(ctx, commit, dir); err != nil {
		return err
	}
	_, err := f.submodules.fillSubmodules(ctx, f.ws, dir, commit)
	return err
}

// isFilled reports whether a path lies in a submodule that was filled.
func (f *folder) isFilled(path string) bool {
	return f.submodules != nil && slices.ContainsFunc(f.submodules.laid, func(sub string) bool { return strings.HasPrefix(path, sub+"/") })
}

// fillSubmodules puts the submodules of a commit into a folder that has its other files. A nil s does
// nothing.
func (s *submodules) fillSubmodules(ctx context.Context, ws *workspace.Workspace, dir string, commit wire.ID) (done filling, err error) {
	if s == nil {
		return done, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, submoduleTime, fmt.Errorf("fetching submodules took more than %s", submoduleTime))
	defer cancel()

	top := module{url: s.url, dir: dir}
	if top.inner, err = ws.ListSubmodules(ctx, commit); err != nil || len(top.inner) == 0 {
		return done, err
	}

	now, err := readAddresses(ctx, ws, commit)
	if top.addresses = now; err == nil && !s.base.IsZero() {
		top.addresses, err = readAddresses(ctx, ws, s.base)
	}
	if err != nil {
		return done, err
	}
	for at, address := range top.addresses {
		if now[at] != address { // a role may name any server
			delete(top.addresses, at)
		}
	}

	done = filling{s: s, replaces: s.w.o.Workspace == "" || dir != s.w.folder.dir}
	err = done.fillInner(ctx, top)
	return done, err
}

// module is a repository whose files lie in a folder.
type module struct {
	url       string
	path      string // of its folder in the top one
	dir       string
	depth     int
	inner     []workspace.Submodule
	addresses map[string]string // of inner, by path
}

// readAddresses reads the .gitmodules file of a commit.
func readAddresses(ctx context.Context, ws *workspace.Workspace, commit wire.ID) (map[string]string, error) {
	data, err := ws.ReadFile(ctx, commit, gitmodules, maxModules)
	return parseAddresses(data), err
}

// parseAddresses returns the addresses of submodules by their paths. A file that can't be read has none.
func parseAddresses(data []byte) map[string]string {
	out := map[string]string{}
	file := config.New()
	_ = config.NewDecoder(bytes.NewReader(data)).Decode(file)
	for _, m := range file.Section("submodule").Subsections {
		out[path.Clean(m.Option("path"))] = m.Option("url")
	}
	return out
}

// filling is how far the submodules of a folder are filled.
type filling struct {
	s        *submodules
	replaces bool // removes what lies in their folders
	filled   []string
	failed   []workspace.LeftOut
}

// fillInner fills the submodules of a module.
func (f *filling) fillInner(ctx context.Context, m module) error {
	for _, sub := range m.inner {
		inner := module{path: path.Join(m.path, sub.Path), dir: filepath.Join(m.dir, filepath.FromSlash(sub.Path)), depth: m.depth + 1}
		err := f.fillModule(ctx, m, sub, &inner)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			f.failed = append(f.failed, workspace.LeftOut{Path: inner.path, Kind: workspace.LeftSubmodule, Why: text.Cut(text.Line(err.Error()), 300)})
			continue
		}

		f.filled = append(f.filled, inner.path)
		if err := f.fillInner(ctx, inner); err != nil {
			return err
		}
	}
	return nil
}

// fillModule lays the files of a submodule into its folder. It first removes the files of an earlier
// step, so that nothing stale is there if it fails.
func (f *filling) fillModule(ctx context.Context, m module, sub workspace.Submodule, inner *module) (err error) {
	if entries, err := os.ReadDir(inner.dir); err == nil && len(entries) > 0 {
		if !f.replaces && !slices.Contains(f.s.laid, inner.path) {
			return errors.New("its folder is not empty: remove its files")
		}
		if err := removeImage(ctx, inner.dir); err != nil {
			return err
		}
	}

	if len(f.filled)+len(f.failed) >= maxSubmodules || inner.depth > maxNesting {
		return fmt.Errorf("uwf fetches at most %d submodules, %d deep in one another", maxSubmodules, maxNesting)
	}
	if inner.url, err = resolveAddress(m.url, m.addresses[sub.Path]); err != nil {
		return err
	}
	tree, err := f.s.fetchModule(ctx, sub.Commit, inner)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(inner.dir, 0o755); err != nil {
		return err
	}
	return copytree.Copy(ctx, tree, inner.dir)
}

// remoteAddress matches addresses that submodules may have: git, too, follows no local paths.
var remoteAddress = lazyregexp.New(`^((https?|ssh)://[^/]|[^/:\\-][^/:\\]*:[^/:])`)

// resolveAddress returns the address of a submodule, which may be relative to its repository's, see
// git-submodule(1).
func resolveAddress(base, address string) (string, error) {
	if address == "" {
		return "", fmt.Errorf("%s of the commit that the thread began from has no such address", gitmodules)
	}
	if strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../") {
		address = path.Clean(address)
		base = strings.TrimRight(base, "/") + "/"
		for strings.HasPrefix(address, "../") && strings.ContainsAny(base, "/:") {
			address = strings.TrimPrefix(address, "../")
			base = base[:len(base)-1]
			base = base[:strings.LastIndexAny(base, "/:")+1]
		}
		address = base + address
	}
	if !remoteAddress.MatchString(address) {
		return "", errors.New("its address is not one of https or ssh")
	}
	return address, nil
}

// The parts of the copy of a submodule.
const moduleTree, moduleInner = "tree", "submodules.json"

// fetchModule returns a folder with the files of a commit of m's repository, and sets m's own submodules.
func (s *submodules) fetchModule(ctx context.Context, commit wire.ID, m *module) (tree string, err error) {
	folder := filepath.Join(s.images, fmt.Sprintf("module-%.16x", sha256.Sum256([]byte(m.url))))
	lock, err := lockImages(ctx, folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // which unlocks it

	image := filepath.Join(folder, commit.String())
	if _, err := os.Stat(image); err != nil {
		if err := s.downloadModule(ctx, m.url, commit, image); err != nil {
			return "", err
		}
	}

	list, err := os.ReadFile(filepath.Join(image, moduleInner))
	if err == nil {
		err = json.Unmarshal(list, &m.inner)
	}
	if err != nil {
		return "", err
	}
	tree = filepath.Join(image, moduleTree)
	if len(m.inner) > 0 {
		data, _ := os.ReadFile(filepath.Join(tree, gitmodules)) // without it they have no address
		m.addresses = parseAddresses(data)
	}
	used := s.w.f.Now()
	return tree, errors.Join(os.Chtimes(image, used, used), os.Chtimes(folder, used, used))
}

// downloadModule makes the copy of a commit of another repository.
func (s *submodules) downloadModule(ctx context.Context, address string, commit wire.ID, image string) (err error) {
	remote, err := s.w.f.Dial(address)
	if err != nil {
		return err
	}

	half, err := os.MkdirTemp(filepath.Dir(image), halfMade)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeImage(ctx, half)) }()
	tree := filepath.Join(half, moduleTree)
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	ws, err := workspace.Open(tree, remote)
	if err != nil {
		return err
	}

	if err := ws.Restore(ctx, commit); err != nil {
		if said := (*wire.RemoteError)(nil); errors.As(err, &said) { // which names no folder
			return said
		}
		return err
	}

	inner, err := ws.ListSubmodules(ctx, commit)
	if err != nil {
		return err
	}
	list, err := json.Marshal(inner)
	if err == nil {
		err = os.WriteFile(filepath.Join(half, moduleInner), list, 0o600)
	}
	if err == nil {
		err = os.Rename(half, image)
	}
	return err
}
