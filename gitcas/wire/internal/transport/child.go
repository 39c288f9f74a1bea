package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
)

// child is a program that speaks the protocol on its standard streams.
type child struct {
	w    *watch
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs tail // complete once the child has ended
	fed  sync.WaitGroup
}

// graceTime is how long a child whose answer was read may take to end.
const graceTime = 2 * time.Second

// startChild starts a program from the PATH in env, in a process group of its
// own that is killed whole when ctx ends.
func startChild(ctx context.Context, o Options, env []string, name string, args ...string) (*child, error) {
	prog, err := lookPath(name, o.Env)
	if err != nil {
		return nil, err
	}
	c := &child{w: newWatch(ctx, o)}
	c.cmd = exec.CommandContext(c.w.ctx, prog, args...)
	c.cmd.Env = env
	c.cmd.Dir = os.TempDir() // never a folder whose files could matter
	c.cmd.Stderr = &c.errs
	c.cmd.WaitDelay = graceTime
	ownGroup(c.cmd)
	if err := c.startProgram(); err != nil {
		c.w.stopWatch()
		if cause := ctx.Err(); cause != nil {
			err = cause
		}
		kind := fault.ErrUnreachable
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOEXEC) {
			kind = fault.ErrNoProgram
		}
		return nil, fmt.Errorf("%w: starting %s: %w", kind, name, err)
	}
	return c, nil
}

func (c *child) startProgram() error {
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.in = in
	c.out = bufio.NewReaderSize(&watched{out, c.w}, 32<<10)
	return c.cmd.Start()
}

// writeRequest writes the request and closes the child's input, while the answer is
// read.
func (c *child) writeRequest(body []byte) {
	c.fed.Go(func() {
		// A child that ends without reading everything says why elsewhere.
		_, _ = io.Copy(c.in, &watched{bytes.NewReader(body), c.w})
		c.hangUp()
	})
}

func (c *child) hangUp() { _ = c.in.Close() }

// newAnswer makes the child's output the answer of a call.
func (c *child) newAnswer(at time.Time) *Answer {
	return &Answer{Reader: c.out, At: at, Finish: c.waitForEnd}
}

// waitForEnd ends the child. When reading its answer failed, what the program said
// on its error output is what happened.
func (c *child) waitForEnd(err error) error {
	if err == nil {
		c.fed.Wait()
	}
	c.hangUp()
	var kill *time.Timer
	if err != nil && !errors.Is(err, fault.ErrEarly) {
		c.w.cancel(nil)
	} else {
		kill = time.AfterFunc(graceTime, func() { c.w.cancel(nil) })
		_, _ = io.Copy(io.Discard, io.LimitReader(c.out, drainMax))
	}
	err = c.w.explainBreak(err)
	_ = c.cmd.Wait()
	c.fed.Wait()
	if kill != nil {
		kill.Stop()
	}
	defer c.w.stopWatch()
	if err == nil || !errors.Is(err, fault.ErrEarly) {
		return err
	}
	said := fault.TellingLine("", string(c.errs.b))
	if said == "" {
		return err
	}
	if known, kind := fault.Translate(said); known {
		err = kind
	}
	return fmt.Errorf("%w: %s", err, said)
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = pktline.AppendTail(t.b, p)
	return len(p), nil
}

// lookPath finds a program in the PATH of env; entries that are not absolute
// are skipped, so that no working directory can supply a program.
func lookPath(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if runtime.GOOS == "windows" {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	for _, dir := range filepath.SplitList(lookupEnv(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: %q is needed for this remote and is not on PATH", fault.ErrNoProgram, name)
}

func lookupEnv(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// cleanEnv takes the named variables out of env and adds fixed ones.
func cleanEnv(env []string, names []string, fixed ...string) []string {
	out := slices.Clone(fixed)
	for _, n := range names {
		if v := lookupEnv(env, n); v != "" {
			out = append(out, n+"="+v)
		}
	}
	return out
}
