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

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
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
	// image is what the present step was given; empty: nothing.
	image string
}

// newPreparer makes one for a store at a URL.
func newPreparer(w *Worker, runner *command.Runner, root, url string) *preparer {
	return &preparer{w: w, runner: runner, images: ImageRoot(root), store: fmt.Sprintf("%.8x", sha256.Sum256([]byte(url)))}
}

// ImageRoot is the folder below the storage root with what was prepared for workspaces.
func ImageRoot(root string) string { return filepath.Join(root, "images") }

// manifests say what is to be installed, and by which tools.
var manifests = []string{
	"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc", ".yarnrc.yml", ".nvmrc", ".node-version",
	"go.mod", "go.sum", "go.work", "go.work.sum", "Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml",
	"requirements.txt", "requirements-dev.txt", "constraints.txt", "pyproject.toml", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "setup.py", "setup.cfg", ".python-version",
	"Gemfile", "Gemfile.lock", ".ruby-version", "composer.json", "composer.lock", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile",
	"mix.exs", "mix.lock", "deno.json", "deno.lock", ".tool-versions", "mise.toml", ".sdkmanrc",
}

// imageParts are the folders in an image.
const (
	imageHome = "home"
	imageTree = "tree"
)

// imageFormat is part of every key: another one makes all images anew.
const imageFormat = "uwf image 1"

// maxPrepare bounds how long the commands may take together.
const maxPrepare = 30 * time.Minute

// Prepare implements step.Preparer.
func (p *preparer) Prepare(ctx context.Context, req step.PrepareRequest) (string, error) {
	lines := p.w.config.Workspace.Prepare
	if p.image = ""; len(lines) == 0 || req.From.IsZero() {
		return "", nil
	}
	now, shared, err := p.compareManifests(ctx, req)
	if err != nil {
		return "", err
	}
	commit := req.From
	folder := filepath.Join(p.threadFolder(p.w.folder.thread), now)
	if shared {
		commit, folder = req.Base, filepath.Join(p.root(), now)
	}
	lock, err := lockImages(ctx, folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	p.image = filepath.Join(folder, commit.String())
	output := ""
	if _, err := os.Stat(p.image); errors.Is(err, fs.ErrNotExist) {
		if output, err = p.makeImage(ctx, commit, shared, lines, min(req.Time, maxPrepare)); err != nil {
			p.image = ""
			return output, err
		}
	}
	used := p.w.f.Now()
	return output, errors.Join(os.Chtimes(p.image, used, used), os.Chtimes(folder, used, used), p.laySeeds(ctx, req.From))
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
// installed, of the commands and of the tools. shared: these files are those of the commit that
// the thread began from.
func (p *preparer) compareManifests(ctx context.Context, req step.PrepareRequest) (key string, shared bool, err error) {
	names := slices.Clone(manifests)
	for _, line := range p.w.config.Workspace.Prepare { // and what the commands name
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\"=;&|<>()", r) }) {
			names = append(names, path.Base(path.Clean(word)))
		}
	}
	now, err := p.w.folder.ws.FilesNamed(ctx, req.From, names)
	if err != nil {
		return "", false, err
	}
	before := now
	if !req.Base.IsZero() && req.Base != req.From {
		if before, err = p.w.folder.ws.FilesNamed(ctx, req.Base, names); err != nil {
			return "", false, err
		}
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q\n%q\n%q\n", imageFormat, p.w.config.Workspace.Prepare, now, p.findTools())
	return fmt.Sprintf("%x", sum.Sum(nil)), !req.Base.IsZero() && slices.Equal(now, before), nil
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
		for _, dir := range filepath.SplitList(sandbox.Getenv(p.w.f.Environ, "PATH")) {
			real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if err != nil || !filepath.IsAbs(dir) {
				continue
			}
			if info, err := os.Stat(real); err == nil {
				out = append(out, fmt.Sprintf("%s %s %d %d", name, real, info.Size(), info.ModTime().Unix()))
			}
			break
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
// what the image before left in HOME, whose place the new one takes.
func (p *preparer) makeImage(ctx context.Context, commit wire.ID, shared bool, lines []string, allowed time.Duration) (output string, err error) {
	folder := filepath.Dir(p.image)
	before := findImages(folder)
	half, err := os.MkdirTemp(folder, ".new-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeImage(ctx, half)) }()
	home := filepath.Join(half, imageHome)
	if err = os.Mkdir(home, 0o700); err == nil && len(before) > 0 {
		err = copytree.Copy(ctx, filepath.Join(folder, before[0], imageHome), home)
	}
	if err != nil {
		return "", err
	}
	network := sandbox.Network(p.w.config.Confine.Network)
	if shared {
		network = sandbox.Open
	}
	p.w.logEvent(thread.Event{Kind: "notice", Thread: p.w.folder.thread, Text: "the workspace is prepared, which is kept for later steps: " + text.Cut(strings.Join(lines, "; "), 200)})
	end := p.w.f.Now().Add(allowed)
	err = p.runner.InFolder(ctx, func(ctx context.Context, dir string) error {
		if err := p.w.folder.ws.CopyTo(ctx, commit, dir); err != nil {
			return err
		}
		for _, line := range lines {
			res, err := p.runner.Run(ctx, command.Command{
				Line: line, Dir: dir, Network: network, Timeout: max(end.Sub(p.w.f.Now()), time.Second),
				FillHome: func(ctx context.Context, to string) error { return copytree.Copy(ctx, home, to) },
				KeepHome: func(ctx context.Context, from string) error {
					return errors.Join(removeImage(ctx, home), copytree.Copy(ctx, from, home))
				},
			})
			output += "$ " + line + "\n" + res.Output
			if err != nil {
				return err
			}
			if failed := resultOf("prepare", res); failed.Status != "passed" {
				return &step.PrepareError{Command: line, End: failed.DescribeEnd(), Output: res.Output}
			}
		}
		return keepIgnored(ctx, p.w, dir, commit, filepath.Join(half, imageTree))
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
			if err := removeImage(ctx, old); err != nil {
				return output, err
			}
		}
	}
	return output, nil
}

// imageLife is how long an image stays that nobody uses: longer than any step lasts.
const imageLife = 24 * time.Hour

// findImages are the images in a folder, the one that was used last first.
func findImages(folder string) (names []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // then there are none
	}
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names, used[e.Name()] = append(names, e.Name()), info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return used[b].Compare(used[a]) })
	return names
}

// maxImage is how many files are removed of an image at once.
const maxImage = 10_000_000

func removeImage(ctx context.Context, dir string) error {
	if err := removal.Tree(context.WithoutCancel(ctx), dir, maxImage); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// keepIgnored keeps what commands left in ignored files. All else they changed is undone.
func keepIgnored(ctx context.Context, w *Worker, dir string, commit wire.ID, to string) error {
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
	return errors.Join(os.MkdirAll(to, 0o700), copytree.CopyPaths(ctx, dir, to, ignored))
}

// laySeeds puts what was prepared into the folder: in place of what agents left in ignored
// files, where it is a folder of uwf's own.
func (p *preparer) laySeeds(ctx context.Context, from wire.ID) error {
	fo := p.w.folder
	if p.w.o.Workspace == "" {
		left, err := fo.ws.ExtraPaths(ctx, from)
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := removeImage(ctx, filepath.Join(fo.dir, filepath.FromSlash(path))); err != nil {
				return err
			}
		}
	}
	return p.fillTree(ctx, fo.dir)
}

// fillTree puts the ignored files of the image into a folder.
func (p *preparer) fillTree(ctx context.Context, dir string) error {
	if p == nil || p.image == "" {
		return nil
	}
	return copytree.Copy(ctx, filepath.Join(p.image, imageTree), dir)
}

// fillHome puts the HOME of the image into another one.
func (p *preparer) fillHome(ctx context.Context, home string) error {
	if p == nil || p.image == "" {
		return nil
	}
	return copytree.Copy(ctx, filepath.Join(p.image, imageHome), home)
}
