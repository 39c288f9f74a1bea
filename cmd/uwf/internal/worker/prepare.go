package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/jobcache"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/copytree"
	"github.com/united-workforce/uwf/internal/removal"
	"github.com/united-workforce/uwf/internal/text"
)

// preparer makes a workspace ready by the commands of the settings. They run on a copy of the
// commit, never in the folder itself, and what they leave (HOME, and what .gitignore ignores)
// is kept as an image below the storage root: agents and checks get copies of it, and nothing
// that these write is ever read by anybody else.
//
// An image is shared by all threads where the files that say what is to be installed are those
// of the commit that the thread began from: only there the commands may use the network, and
// they see nothing that an agent wrote. Where a role has changed such a file, the image is the
// thread's own, and made with no more of the network than agents have.
type preparer struct {
	w      *Worker
	runner *command.Runner
	// images is the folder of all images, store the name of that with this store's.
	images, store string
	// image is what the present step was given, and base the one of the commit that the thread
	// began from; empty: there is none.
	image, base string
	// held are, by folder, the files that fillTree laid there and that name the image's places.
	held map[string][]string
}

// newPreparer makes one for a store at a URL.
func newPreparer(w *Worker, runner *command.Runner, root, url string) *preparer {
	return &preparer{w: w, runner: runner, held: map[string][]string{}, images: ImageRoot(root), store: fmt.Sprintf("%.8x", sha256.Sum256([]byte(url)))}
}

// ImageRoot is the folder below the storage root with what was prepared for workspaces.
func ImageRoot(root string) string { return filepath.Join(root, "images") }

// imageParts are the folders in an image.
const imageHome, imageTree = "home", "tree"

// imageFormat is part of every key: another one makes all images anew.
const imageFormat = "uwf image 2"

// The places of an image's parts, as its files name them. In a copy they are that copy's.
const namedHome, namedTree = "/uwf-prepared/home", "/uwf-prepared/tree"

// maxPrepare bounds how long the commands may take together.
const maxPrepare = 30 * time.Minute

// Prepare implements step.Preparer.
func (p *preparer) Prepare(ctx context.Context, req step.PrepareRequest) (string, error) {
	lines := p.w.config.Workspace.Prepare
	if p.image, p.base = "", ""; len(lines) == 0 || req.From.IsZero() {
		return "", nil
	}
	there, err := p.w.folder.ws.FilesNamed(ctx, req.From, p.w.locks)
	if err != nil {
		return "", err
	}
	for _, lock := range p.w.locks {
		if !slices.ContainsFunc(there, func(s string) bool { return strings.HasPrefix(s, lock+" ") }) {
			return "", nil // the commit has nothing to install
		}
	}
	now, base, err := p.compareManifests(ctx, req)
	if err != nil {
		return "", err
	}
	shared := now == base
	commit := req.From
	folder := filepath.Join(p.threadFolder(p.w.folder.thread), now)
	sharedFolder := filepath.Join(p.root(), base)
	if shared {
		commit, folder = req.Base, sharedFolder
	}
	lock, err := lockImages(ctx, folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	p.image, p.base = filepath.Join(folder, commit.String()), filepath.Join(sharedFolder, req.Base.String())
	output, save := "", func() {}
	if shared {
		save = p.loadImage(ctx, folder, now)
	}
	if _, err := os.Stat(p.image); errors.Is(err, fs.ErrNotExist) {
		begin := p.base // has what was fetched for the base
		if before := p.findBefore(ctx, folder, shared, req.Base); before != "" {
			begin = filepath.Join(folder, before)
		}
		if output, err = p.makeImage(ctx, filepath.Join(begin, imageHome), commit, shared, lines, min(req.Time, maxPrepare)); err != nil {
			p.image = ""
			return output, err
		}
		save()
	}
	if _, err := os.Stat(p.base); err != nil {
		p.base = ""
	}
	used := p.w.f.Now()
	return output, errors.Join(os.Chtimes(p.image, used, used), os.Chtimes(folder, used, used), os.Chtimes(filepath.Dir(folder), used, used), p.laySeeds(ctx, req.From))
}

// loadImage gets a shared image from the cache of a CI job, whose machine has none for these files:
// of whichever commit it was made. save keeps what is made instead where the cache had none.
// A cache that fails is told of, and fails nothing.
func (p *preparer) loadImage(ctx context.Context, folder, key string) (save func()) {
	cache, ok := jobcache.Open(p.w.f.Environ, nil)
	if p.w.f.Job == nil || !ok || len(findImages(folder)) > 0 {
		return func() {}
	}
	notice := func(err error) {
		if err != nil {
			p.w.logEvent(thread.Event{Kind: "notice", Thread: p.w.folder.thread, Text: err.Error()})
		}
	}
	key = "uwf-" + p.store + "-" + key
	found, err := cache.Load(ctx, key, folder, imageHome, imageTree)
	if notice(err); found || err != nil {
		return func() {}
	}
	return func() { notice(cache.Save(ctx, key, p.image)) }
}

// root is where the images of this repository's store lie.
func (p *preparer) root() string { return filepath.Join(p.images, p.store) }

// ThreadImages is the folder of the images that are threads' own.
const ThreadImages = "threads"

// threadFolder is where a thread's own images lie.
func (p *preparer) threadFolder(id gitcas.ThreadID) string {
	return filepath.Join(p.root(), ThreadImages, string(id))
}

// compareManifests gives the key of an image: the SHA-256 of the files that say what is to be
// installed, of the commands and of the tools. base is that of the commit that the thread began
// from; empty: it began from nothing.
func (p *preparer) compareManifests(ctx context.Context, req step.PrepareRequest) (now, base string, err error) {
	names := checks.Manifests()
	for _, line := range p.w.config.Workspace.Prepare { // and what the commands name
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\"=;&|<>()", r) }) {
			names = append(names, path.Base(path.Clean(word)))
		}
	}
	tools := p.findTools()
	keyOf := func(commit wire.ID) (string, error) {
		if commit.IsZero() {
			return "", nil
		}
		files, err := p.w.folder.ws.FilesNamed(ctx, commit, names)
		if subs, serr := p.w.folder.ws.ListSubmodules(ctx, commit); p.w.folder.submodules != nil {
			files, err = append(files, fmt.Sprint(subs, p.w.folder.submodules.missing)), errors.Join(err, serr)
		}
		confined := p.w.sandbox != nil && !p.w.sandbox.Waives(p.w.sandbox.Check()) // else HOME is not kept
		return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\n%t\n%q\n%q\n%q\n", imageFormat, confined, p.w.config.Workspace.Prepare, files, tools))), err
	}
	if base, err = keyOf(req.Base); err != nil || req.From == req.Base {
		return base, base, err
	}
	now, err = keyOf(req.From)
	return now, base, err
}

// findTools tells the toolchains of this machine apart: where each program is, and since when.
func (p *preparer) findTools() []string {
	var out []string
	names := []string{"go", "node", "npm", "python3", "cargo", "rustc", "ruby", "java", "php"}
	for _, line := range p.w.config.Workspace.Prepare {
		if words := strings.Fields(line); len(words) > 0 {
			names = append(names, words[0])
		}
	}
	for _, name := range names {
		program, _, err := p.w.f.Program(name)
		if info, serr := os.Stat(program); err == nil && serr == nil {
			out = append(out, fmt.Sprintf("%s %s %d %d", name, program, info.Size(), info.ModTime().Unix()))
		}
	}
	return out
}

// lockImages locks a folder of images for this process, and waits for others.
func lockImages(ctx context.Context, folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, nil // locked, or on a file system that locks nothing
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(lockPause):
		}
	}
}

const lockPause = 100 * time.Millisecond

// makeImage runs the commands on a copy of a commit, and keeps what they leave. They begin with
// what another image left in HOME. What killed processes left half made is removed first: no
// other makes one while the folder is locked.
func (p *preparer) makeImage(ctx context.Context, begin string, commit wire.ID, shared bool, lines []string, allowed time.Duration) (output string, err error) {
	folder := filepath.Dir(p.image)
	before := findImages(folder)
	killed, err := fs.Glob(os.DirFS(folder), halfMade+"*")
	for _, name := range killed {
		err = errors.Join(err, removeImage(ctx, filepath.Join(folder, name)))
	}
	if err != nil {
		return "", err
	}
	half, err := os.MkdirTemp(folder, halfMade)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeImage(ctx, half)) }()
	home := filepath.Join(half, imageHome)
	if err = copytree.Copy(ctx, begin, home); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	network := sandbox.Network(p.w.config.Confine.Network)
	if shared {
		network = sandbox.Open
	}
	p.w.logEvent(thread.Event{Kind: "notice", Thread: p.w.folder.thread, Text: "preparing the workspace, once for all later steps: " + text.Cut(strings.Join(lines, "; "), 200)})
	end := p.w.f.Now().Add(allowed)
	err = p.runner.InFolder(ctx, func(ctx context.Context, dir string) error {
		if err := p.w.folder.copyTo(ctx, commit, dir); err != nil {
			return err
		}
		moves := []copytree.Move{{Old: dir, New: namedTree}}
		for _, line := range lines {
			res, err := p.runner.Run(ctx, command.Command{
				Line: line, Dir: dir, Network: network, Timeout: max(end.Sub(p.w.f.Now()), time.Second),
				FillHome: func(ctx context.Context, to string) error { return moverTo(dir, to).CopyFolder(ctx, home, to) },
				KeepHome: func(ctx context.Context, from string) error {
					moves = append(moves, copytree.Move{Old: from, New: namedHome})
					mover := copytree.Mover{Moves: moves}
					return errors.Join(removeImage(ctx, home), mover.CopyFolder(ctx, from, home))
				},
			})
			p.w.tellGaps(res.Gaps)
			output += "$ " + line + "\n" + res.Output
			if err != nil {
				return err
			}
			if failed := resultOf("prepare", res); failed.Status != "passed" {
				return &step.PrepareError{Command: line, End: failed.DescribeEnd(), Output: res.Output}
			}
		}
		mover := copytree.Mover{Moves: moves}
		err := keepIgnored(ctx, p.w, dir, commit, filepath.Join(half, imageTree), &mover)
		if mover.Binary > 0 {
			p.w.logEvent(thread.Event{Kind: "notice", Thread: p.w.folder.thread, Text: text.Plural(mover.Binary, "prepared binary file") + " with the path of the folder that it was made in, which is gone"})
		}
		return err
	})
	if err != nil {
		return output, err
	}
	if err := os.Rename(half, p.image); err != nil {
		return output, fmt.Errorf("keep what was prepared: %w", err)
	}
	for _, name := range before {
		old := filepath.Join(folder, name)
		if info, err := os.Stat(old); err == nil && p.w.f.Now().Sub(info.ModTime()) > imageLife {
			if err := removeImage(ctx, RetireImage(old)); err != nil {
				return output, err
			}
		}
	}
	return output, nil
}

// halfMade begins the names of images that are not whole: they are being made, or removed.
const halfMade = ".new-"

// RetireImage gives an image, or a folder of images, that is to be removed a name by which nobody
// uses what is left of it, should that be cut short. It gives back that name, or, where there is
// no renaming it, the old one.
func RetireImage(path string) string {
	to := filepath.Join(filepath.Dir(path), halfMade+filepath.Base(path))
	if os.Rename(path, to) != nil {
		return path
	}
	return to
}

// imageLife is how long an image stays that nobody uses: longer than any step lasts.
const imageLife = 24 * time.Hour

// maxBefore is how many images are looked at for one to begin with.
const maxBefore = 5

// findBefore finds the image whose HOME another one of the folder may begin with; empty: there
// is none. A shared one may only where all that the commands ran there is in the history of the
// base: a base may be a branch that nobody has looked at yet.
func (p *preparer) findBefore(ctx context.Context, folder string, shared bool, base wire.ID) string {
	names := findImages(folder)
	for _, name := range names[:min(len(names), maxBefore)] {
		if !shared {
			return name
		}
		if in, err := workbranch.Contains(ctx, p.w.folder.store.Remote(), base, plumbing.NewHash(name)); in && err == nil { // else it begins with nothing
			return name
		}
	}
	return ""
}

// findImages are the images in a folder, the one that was used last first.
func findImages(folder string) (names []string) {
	entries, _ := os.ReadDir(folder) // what can't be listed is none
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names, used[e.Name()] = append(names, e.Name()), info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return used[b].Compare(used[a]) })
	return names
}

// removeImage removes an image, or a part of one, also where ctx is over.
func removeImage(ctx context.Context, dir string) error {
	return removal.Tree(context.WithoutCancel(ctx), dir, 0)
}

// keepIgnored keeps what commands left in ignored files. All else they changed is undone.
func keepIgnored(ctx context.Context, w *Worker, dir string, commit wire.ID, to string, mover *copytree.Mover) error {
	ws, err := workspace.Open(dir, w.folder.store.Remote())
	if err != nil {
		return err
	}
	if err := ws.Restore(ctx, commit); err != nil {
		return fmt.Errorf("find out what was prepared: %w", err)
	}
	ignored, err := ws.ExtraPaths(ctx, commit)
	if err != nil {
		return err
	}
	return mover.CopyNamed(ctx, dir, to, ignored)
}

// laySeeds puts what was prepared into the folder: in place of what agents left in ignored
// files, where it is a folder of uwf's own, and beside a person's ignored files where it was
// named. What the commit does not ignore any more is no part of it.
func (p *preparer) laySeeds(ctx context.Context, from wire.ID) error {
	fo := p.w.folder
	left, err := fo.ws.ExtraPaths(ctx, from)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, fo.isFilled)
	if p.w.o.Workspace == "" {
		for _, path := range left {
			if err := removeImage(ctx, filepath.Join(fo.dir, filepath.FromSlash(path))); err != nil {
				return err
			}
		}
	}
	if err := p.fillTree(ctx, fo.dir, left); err != nil {
		return err
	}
	return fo.ws.Restore(ctx, from)
}

// fillTree puts the ignored files of the image into a folder with a commit's files, which may
// be other ones than those of the image's commit: they stay, and so does all in kept.
func (p *preparer) fillTree(ctx context.Context, dir string, kept []string) error {
	if p == nil || p.image == "" {
		return nil
	}
	mover := moverTo(dir, namedHome) // which is made later
	err := mover.CopyFolder(ctx, filepath.Join(p.image, imageTree), dir, kept...)
	p.held[dir] = mover.Held
	return err
}

// moverTo lays parts of an image where its tree is dir and its HOME is home.
func moverTo(dir, home string) *copytree.Mover {
	return &copytree.Mover{Moves: []copytree.Move{{Old: namedTree, New: dir}, {Old: namedHome, New: home}}}
}

// fillHome puts the HOME of the image into another one, and its place into what fillTree laid
// in dir.
func (p *preparer) fillHome(ctx context.Context, home, dir string) (err error) {
	if p.image == "" {
		return nil
	}
	if err := moverTo(dir, home).CopyFolder(ctx, filepath.Join(p.image, imageHome), home); err != nil || len(p.held[dir]) == 0 {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range p.held[dir] {
		_ = root.Remove(name) // what is still there stays
	}
	return moverTo(dir, home).CopyNamed(ctx, filepath.Join(p.image, imageTree), dir, p.held[dir])
}

// usePython makes a command that was detected use the prepared Python of its folder, if there is
// one: the system's has none of the project's packages.
func (p *preparer) usePython(line, location string) string {
	const python = ".venv/bin/python"
	rest, ok := strings.CutPrefix(line, "python3 ")
	if p == nil || p.image == "" || !ok {
		return line
	}
	if _, err := os.Lstat(filepath.Join(p.image, imageTree, location, python)); err != nil {
		return line
	}
	return python + " " + rest
}
