package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// LogDir is the folder of the debug log.
func (f *Factory) LogDir() (string, error) {
	root, err := f.StorageRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "logs"), nil
}

// Log is the debug log. UWF_LOG=off switches it off, UWF_DEBUG=1 lets it say more.
// Without a storage root there is none, and agents, which run as processes of their
// own, write none.
func (f *Factory) Log() *debuglog.Logger {
	log, _ := f.debug.findOnce(func() (*debuglog.Logger, error) { return openLog(f), nil })
	return log
}

func openLog(f *Factory) *debuglog.Logger {
	dir, err := f.LogDir()
	if err != nil || f.Getenv("UWF_LOG") == "off" || f.Getenv("UWF_CONTEXT") != "" {
		return nil
	}
	now, level := f.Now, slog.LevelInfo
	if now == nil {
		now = time.Now
	}
	if v := f.Getenv("UWF_DEBUG"); v != "" && v != "0" {
		level = slog.LevelDebug
		_ = os.MkdirAll(filepath.Dir(dir), 0o700) // who asks for a log gets a place for it
	}
	f.logFiles = debuglog.OpenFiles(dir, now)
	log := debuglog.New(debuglog.Options{Out: f.logFiles, Level: level, Now: now, PID: os.Getpid()})
	if red, err := localRedactor(f); err == nil {
		// Without one no texts are written: see debuglog.
		log.Redact(red)
	}
	return log
}

// CloseLog ends the debug log; what failed in it is nobody's concern.
func (f *Factory) CloseLog() {
	if f.logFiles != nil {
		_ = f.logFiles.Close()
	}
}

// logSources writes down where the settings come from.
func logSources(f *Factory) {
	c, err := f.Config()
	s := f.ConfigSources()
	var files []string
	for _, name := range []string{s.RepoFile, s.HomeFile, s.EnvFile} {
		if name == "" {
			continue
		}
		if _, err := os.Stat(name); err == nil {
			files = append(files, name)
		}
	}
	attrs := []slog.Attr{slog.Any("files", files)}
	if c != nil {
		attrs = append(attrs, slog.String("defaultModel", c.DefaultModel), slog.String("defaultAgent", c.DefaultAgent),
			slog.String("stateRemote", c.State.Remote), slog.Int("warnings", len(c.Warnings)))
	}
	f.Log().LogOutcome(err, "7C0NF1GR", "settings read", attrs...)
}

// LogCommand writes down that a command begins. Of its arguments only the names of
// flags are written; at level debug everything.
func (f *Factory) LogCommand(command string, flags, args []string) {
	if f.Log() == nil {
		return
	}
	for _, arg := range args {
		// Who only looks into logs is not part of what happened to a thread.
		if id, _, _ := strings.Cut(strings.ToUpper(arg), ":"); gitcas.ThreadID(id).Valid() && command != "uwf log" {
			f.Log().SetThread(id)
			break
		}
	}
	f.Log().Info("B3G1NCMD", "command begins", slog.Any("command", debuglog.OwnText(command)), slog.Any("flags", flags), slog.String("dir", f.Dir))
	f.Log().Debug("B3G1NARG", "its arguments", slog.Any("args", args))
	logSources(f)
}

// LogExit writes down how a command ended.
func (f *Factory) LogExit(command string, code int, message string, took time.Duration) {
	f.Log().Info("END0FCMD", "command ended", slog.Any("command", debuglog.OwnText(command)), slog.Int("exit", code), slog.String("error", message), debuglog.DurationAttr(took))
}

// loggedRemote writes down each session with a remote.
type loggedRemote struct {
	wire.Remote
	log *debuglog.Logger
	now func() time.Time
}

func (r loggedRemote) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	began := r.now()
	l, err := r.Remote.List(ctx, prefixes...)
	r.log.LogOutcome(err, "W1RE71ST", "refs listed", slog.String("remote", r.URL()), slog.Any("prefixes", prefixes), slog.Int("refs", len(l.Refs)), debuglog.DurationAttr(r.now().Sub(began)))
	return l, err
}

func (r loggedRemote) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	began := r.now()
	objects, err := r.Remote.Fetch(ctx, req)
	bytes := 0
	for _, o := range objects {
		bytes += len(o.Data)
	}
	r.log.LogOutcome(err, "W1REFTCH", "objects fetched", slog.String("remote", r.URL()), slog.Int("wants", len(req.Wants)), slog.Int("depth", req.Depth),
		slog.String("filter", req.Filter), slog.Int("objects", len(objects)), slog.Int("bytes", bytes), debuglog.DurationAttr(r.now().Sub(began)))
	return objects, err
}

func (r loggedRemote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	began := r.now()
	at, err := r.Remote.Push(ctx, req)
	bytes := 0
	for _, o := range req.Objects {
		bytes += len(o.Data)
	}
	refs := lists.Map(req.Updates, func(u wire.RefUpdate) string { return u.Name + " " + u.Old.String()[:10] + ".." + u.New.String()[:10] })
	r.log.LogOutcome(err, "W1REP5SH", "refs pushed", slog.String("remote", r.URL()), slog.Any("refs", refs), slog.Bool("atomic", req.Atomic),
		slog.Int("objects", len(req.Objects)), slog.Int("bytes", bytes), debuglog.DurationAttr(r.now().Sub(began)))
	return at, err
}

func (r loggedRemote) Atomic(ctx context.Context) (bool, error) {
	ok, err := r.Remote.Atomic(ctx)
	r.log.LogOutcome(err, "W1REAT0M", "asked for atomic pushes", slog.String("remote", r.URL()), slog.Bool("atomic", ok))
	return ok, err
}

// logSessions is a remote whose sessions are written down, where there is a log.
func logSessions(f *Factory, remote wire.Remote) wire.Remote {
	if f.Log() == nil {
		return remote
	}
	now := f.Now
	if now == nil {
		now = time.Now
	}
	return loggedRemote{Remote: remote, log: f.Log(), now: now}
}
