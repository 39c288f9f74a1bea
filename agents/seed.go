package agents

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/internal/removal"
)

// Seed is a folder below HOME that a program fills when it first runs, and only reads later:
// copilot unpacks 235 MB of itself.
type Seed struct {
	Args   []string // of a run that fills it, asks nobody and ends at once
	Folder string   // with slashes
}

// seedTime bounds that run.
const seedTime = 2 * time.Minute

// makeSeed makes a program's seed where there is none for its version: in a HOME of its own and
// an empty folder, so that nothing of a workspace comes into it. It gives the folder that stands
// for Seed.Folder; empty: there is none, and the program fills its HOME itself.
func (s *Spawner) makeSeed(ctx context.Context, f Foreign, p program.Program) (string, error) {
	if f.Seed == nil || s.o.SeedDir == "" || p.Version == "" {
		return "", nil
	}
	name := fmt.Sprintf("%s-%s-%.4x", f.Program, p.Version, sha256.Sum256([]byte(p.Real)))
	seed := filepath.Join(s.o.SeedDir, name)
	if err := errors.Join(os.MkdirAll(s.o.SeedDir, 0o700), s.o.Sandbox.AllowTraverse(filepath.Dir(s.o.SeedDir), s.o.SeedDir)); err != nil {
		return "", fmt.Errorf("make the folder for what %s unpacks: %w", f.Program, err)
	}
	if os.Chtimes(seed, s.o.Now(), s.o.Now()) == nil { // gc goes by that
		return seed, nil
	}
	made, err := os.MkdirTemp(s.o.SeedDir, "new-")
	if err != nil {
		return "", fmt.Errorf("make the folder for what %s unpacks: %w", f.Program, err)
	}
	defer func() { _ = removal.Tree(context.WithoutCancel(ctx), made, 0) }() // what is left of it
	home, empty := filepath.Join(made, "home"), filepath.Join(made, "empty")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(empty, 0o700)); err != nil {
		return "", err
	}
	run := foreignRun{home: home, temp: empty, program: p}
	out := &headtail.Buffer{Half: 1 << 10}
	res, err := s.runner.Run(ctx, proc.Spec{
		Argv: append([]string{p.Path}, f.Seed.Args...), Dir: empty, Env: run.ownHome(CleanEnviron(s.o.Environ)),
		Stdout: out, Merge: true, Timeout: seedTime, Grace: s.o.Grace,
	})
	if err != nil || res.Stopped != nil || res.Code != 0 {
		return "", fmt.Errorf("run %s for the first time: %w", f.Program, errors.Join(err, res.Stopped, fmt.Errorf("exit code %d: %s", res.Code, out)))
	}
	if err := openToAll(filepath.Join(home, f.Seed.Folder)); err != nil {
		return "", nil // this version unpacks nothing there
	}
	err = os.Rename(filepath.Join(home, f.Seed.Folder), seed)
	if _, serr := os.Stat(seed); err != nil && serr != nil { // else another process was faster
		return "", fmt.Errorf("keep what %s unpacked: %w", f.Program, err)
	}
	return seed, nil
}

// openToAll lets everybody read what is in a folder, and nobody change it: agents may be another
// user.
func openToAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()&0o111 | 0o444
		if e.IsDir() {
			mode = 0o755 // ours to remove
		}
		return os.Chmod(path, mode)
	})
}
