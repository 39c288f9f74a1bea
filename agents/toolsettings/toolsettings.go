// Package toolsettings takes what coding agents obey in a workspace (hooks, MCP servers,
// plugins, settings that name another model) out of their way while they work there, and puts
// it back. What a person reads as text, such as AGENTS.md, stays. It never follows a link out
// of the workspace, and never replaces what the agents wrote.
package toolsettings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/copytree"
	"github.com/united-workforce/uwf/internal/removal"
)

// hidden are the names of the tools' files and folders, wherever they lie, by their last
// part, or the last two. Each was seen to change what a tool does, or is documented to.
var hidden = []string{
	".claude", ".mcp.json", ".codex", ".agents", ".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc",
	".github/hooks", ".github/agents", ".github/skills", ".github/instructions", ".github/copilot-instructions.md", ".copilot",
	".vscode/mcp.json", ".cursor", ".cursorrules", ".cline", ".clinerules", ".continue", ".pi", ".crush.json", "crush.json",
	".goose", ".goosehints", ".hermes", ".env",
}

// isSettings says whether a path, with slashes, is one that tools obey. Case is folded, as
// file systems may do.
func (a Aside) isSettings(name string) bool {
	base, parent := path.Base(name), path.Base(path.Dir(name))
	return slices.ContainsFunc(slices.Concat(hidden, a.Also), func(h string) bool {
		above, last, two := strings.Cut(h, "/")
		if !two {
			return strings.EqualFold(h, base)
		}
		return strings.EqualFold(last, base) && strings.EqualFold(above, parent)
	})
}

// Aside is where the settings of a workspace are kept while they are out of the way.
type Aside struct {
	Workspace string
	// Dir is a folder that agents can't read, below one that exists. It is there from Hide to
	// Restore alone, so that a later process finds what one that was killed has hidden.
	Dir string
	// Also are more names, of what one tool obeys and nothing else keeps it from.
	Also []string
}

// Hide moves the settings out of the workspace. What a killed process had hidden is put back
// before.
func (a Aside) Hide(ctx context.Context) error {
	_, err := a.Restore(ctx)
	if err == nil {
		err = a.eachSettings(ctx, func(root *os.Root, name string) error { return a.hideEntry(ctx, root, name) })
	}
	if err != nil {
		return fmt.Errorf("take tools' settings in %s out of the way: %w", a.Workspace, err)
	}
	return nil
}

// Restore moves the settings back. Own are those that the agents wrote themselves meanwhile:
// they stay as they are, and of a folder that both have the parts are put together.
func (a Aside) Restore(ctx context.Context) (own []string, err error) {
	aside, err := os.OpenRoot(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, a.restoreFailed(err)
	}
	defer func() { _ = aside.Close() }()
	if own, err = a.List(ctx); err != nil {
		return own, a.restoreFailed(err)
	}
	workspace, err := os.OpenRoot(a.Workspace)
	if err != nil {
		return own, a.restoreFailed(err)
	}
	defer func() { _ = workspace.Close() }()
	if err := a.mergeFolder(ctx, aside, workspace, "."); err != nil {
		return own, a.restoreFailed(err)
	}
	if err := removal.Tree(ctx, a.Dir, 0); err != nil {
		return own, a.restoreFailed(err)
	}
	return own, nil
}

func (a Aside) restoreFailed(err error) error {
	return fmt.Errorf("put tools' settings from %s back into %s: %w", a.Dir, a.Workspace, err)
}

// List gives the paths of the settings that are in the workspace now, with slashes.
func (a Aside) List(ctx context.Context) (found []string, err error) {
	err = a.eachSettings(ctx, func(_ *os.Root, name string) error {
		found = append(found, name)
		return nil
	})
	return found, err
}

// eachSettings visits the settings in the workspace. What can't be listed is passed over:
// no tool reads it either.
func (a Aside) eachSettings(ctx context.Context, visit func(root *os.Root, name string) error) (err error) {
	root, err := os.OpenRoot(a.Workspace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil && e.IsDir():
			return fs.SkipDir
		case err != nil || name == ".":
			return nil //nolint:nilerr // no tool reads it either
		case a.isSettings(name):
			if err := visit(root, name); err != nil || !e.IsDir() {
				return err
			}
			return fs.SkipDir
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		}
		return nil
	})
}

// hideEntry moves one entry out of the workspace.
func (a Aside) hideEntry(ctx context.Context, workspace *os.Root, name string) error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	aside, err := os.OpenRoot(a.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = aside.Close() }()
	if err := aside.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return a.moveEntry(ctx, workspace, aside, name)
}

// mergeFolder moves what is in a folder of the aside to where it was. What stands there now
// stays, and so does what now stands in the way of a folder.
func (a Aside) mergeFolder(ctx context.Context, aside, workspace *os.Root, dir string) error {
	entries, err := fs.ReadDir(aside.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		now, err := workspace.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = a.moveEntry(ctx, aside, workspace, name)
		case err == nil && e.IsDir() && now.IsDir():
			err = a.mergeFolder(ctx, aside, workspace, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveEntry moves an entry from one folder to the same place in another, which has its parent.
func (a Aside) moveEntry(ctx context.Context, from, to *os.Root, name string) error {
	source, err := from.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := to.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	base := path.Base(name)
	err = unix.Renameat(int(source.Fd()), base, int(target.Fd()), base)
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	if err := copytree.CopyPaths(ctx, from.Name(), to.Name(), []string{filepath.FromSlash(name)}); err != nil {
		return err
	}
	return removal.In(ctx, from, name, 0)
}
