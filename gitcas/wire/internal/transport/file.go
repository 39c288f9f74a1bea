package transport

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/internal/gitenv"
)

// fileTransport reaches a repository on this machine through git's own
// upload-pack and receive-pack, one process a request, in the stateless form
// that HTTP servers use.
type fileTransport struct {
	path string
	o    Options

	mu    sync.Mutex
	asked bool
	hooks []string // names of hooks that the repository's settings define
}

func (t *fileTransport) URL() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(t.path)}).String()
}

func (t *fileTransport) Exchange(ctx context.Context, c Call) (*Answer, error) {
	if err := c.makeBody(nil); err != nil {
		return nil, err
	}
	hooks, err := t.configuredHooks(ctx)
	if err != nil {
		return nil, err
	}
	args := append(t.gitSettings(), c.Service[len("git-"):], "--stateless-rpc")
	if c.Advert {
		args = append(args, "--advertise-refs")
	}
	env := t.gitEnv(hooks...)
	if c.V2 {
		env = append(env, "GIT_PROTOCOL=version=2")
	}
	ch, err := startChild(ctx, t.o, env, "git", append(args, t.path)...)
	if err != nil {
		return nil, err
	}
	at := t.o.Now()
	ch.writeRequest(c.made)
	return ch.newAnswer(at), nil
}

// configuredHooks are the names of the hooks that the repository's settings define
// (hook.NAME.command, which git 2.54 and later run wherever core.hooksPath points to).
// They can only be switched off by their names.
func (t *fileTransport) configuredHooks(ctx context.Context) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return t.hooks, nil
	}
	args := append(t.gitSettings(), "-C", t.path, "config", "--includes", "--null", "--name-only", "--get-regexp", `^hook\.`)
	ch, err := startChild(ctx, t.o, t.gitEnv(), "git", args...)
	if err != nil {
		return nil, err
	}
	ch.hangUp()
	out, err := io.ReadAll(io.LimitReader(ch.out, maxHooks))
	if err := ch.waitForEnd(err); err != nil {
		return nil, err
	}
	for key := range strings.SplitSeq(string(out), "\x00") {
		key = strings.TrimPrefix(key, "hook.")
		if dot := strings.LastIndexByte(key, '.'); dot >= 0 && !slices.Contains(t.hooks, key[:dot]) {
			t.hooks = append(t.hooks, key[:dot])
		}
	}
	t.asked = true
	return t.hooks, nil
}

// maxHooks bounds what is read of the names of hooks, in bytes.
const maxHooks = 64 << 10

// gitEnv is a clean environment for git: nothing of the user's or the system's
// configuration, no prompts, none of these hooks. A git that runs hooks which settings define reads
// the variables, and their names may have a "=", at which an argument would end.
func (t *fileTransport) gitEnv(hooks ...string) []string {
	var off []gitenv.Setting
	for _, name := range hooks {
		off = append(off, gitenv.Setting{Key: "hook." + name + ".enabled", Value: "false"})
	}
	env := append(gitenv.Clean(), "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
	return cleanEnv(t.o.Env, []string{"PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT"}, append(env, gitenv.Variables(off)...)...)
}

// gitSettings are git's first arguments: no hooks, no maintenance. They overrule what the
// repository itself configures about hooks and checked-out branches.
func (t *fileTransport) gitSettings() []string {
	config := []gitenv.Setting{
		{Key: "core.hooksPath", Value: os.DevNull},
		{Key: "core.fsmonitor", Value: "false"},
		// Else a program of the repository's choice, by default one that lists
		// every ref at every push.
		{Key: "core.alternateRefsCommand", Value: "true"},
		{Key: "gc.auto", Value: "0"},
		{Key: "maintenance.auto", Value: "false"},
		{Key: "receive.autoGC", Value: "false"},
		{Key: "receive.denyCurrentBranch", Value: "refuse"},
		{Key: "receive.advertiseAtomic", Value: "true"},
		{Key: "uploadpack.allowFilter", Value: "true"},
		{Key: "uploadpack.allowAnySHA1InWant", Value: "true"},
	}
	for _, p := range t.ownedNames() {
		config = append(config, gitenv.Setting{Key: "safe.directory", Value: p})
	}
	return gitenv.Args(config...)
}

// ownedNames lists the names under which git may look this one repository up when it
// asks whether the folder belongs to the user. It belongs to someone else in
// containers, where the checkout was made outside.
func (t *fileTransport) ownedNames() []string {
	out := []string{t.path, filepath.Join(t.path, ".git")}
	if real, err := filepath.EvalSymlinks(t.path); err == nil && real != t.path {
		out = append(out, real, filepath.Join(real, ".git"))
	}
	return slices.Compact(out)
}
