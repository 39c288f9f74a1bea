package worker

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/text"
)

// AdviseInstall is the setting that installs what lock files name, as a command.
func AdviseInstall(i checks.Install) string {
	return "uwf config set --repo workspace.prepare " + text.ShellWord(strings.Join(i.Safe, " && "))
}

// offerInstall asks the person once per repository whether what the lock files at its top name is
// installed before agents work, unless the settings say how a workspace is prepared. If nobody can
// be asked, it names the setting.
func (w *Worker) offerInstall() error {
	if w.o.Elsewhere || w.o.AsksNobody || w.config.Workspace.Prepare != nil {
		return nil
	}
	found, ok := checks.FindInstall(ReadTop(os.DirFS(w.f.RepoRoot())))
	if !ok {
		return nil
	}
	demand := func(lines []string) consent.Demand {
		return config.NewDemand("workspace.prepare", lines, "runs before agents work; there is a "+strings.Join(found.Locks, ", "))
	}
	var lines []string
	switch {
	case w.f.Job == nil && app.HasConsent(w.f, demand(found.Whole)):
		lines = found.Whole
	case w.f.Job == nil && app.HasConsent(w.f, demand(found.Safe)):
		lines = found.Safe
	case w.f.Job == nil && app.HasConsent(w.f, demand([]string{})): // they said no
	case w.f.Job != nil || !w.f.IO.CanAsk():
		w.logEvent(thread.Event{Kind: "notice", Text: DescribeInstall(found.Locks) + ": " + AdviseInstall(found)})
	default:
		var err error
		lines, err = askInstall(w.f, found)
		if err == nil {
			err = app.KeepConsent(w.f, []consent.Demand{demand(append([]string{}, lines...))})
		}
		if err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		w.config.PrepareBy(lines)
		w.locks = found.Locks
	}
	return nil
}

// maxLock bounds a lock file, in bytes.
const maxLock = 64 << 20

// ReadTop reads regular files at the top of a folder, as [checks.FindInstall] wants them.
func ReadTop(files fs.FS) func(file string) ([]byte, bool) {
	return func(file string) ([]byte, bool) {
		info, err := fs.Stat(files, file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxLock {
			return nil, false
		}
		b, err := fs.ReadFile(files, file)
		return b, err == nil
	}
}

// DescribeInstall says that nothing installs what lock files name.
func DescribeInstall(locks []string) string {
	return "nothing installs what " + strings.Join(locks, ", ") + " names before agents work, so that tests may not run"
}

// askInstall asks which commands are to run; none: the person said no.
func askInstall(f *app.Factory, found checks.Install) ([]string, error) {
	options, scripts := "[y, N]", !slices.Equal(found.Safe, found.Whole)
	f.Notes().Printf("  y: %s\n", strings.Join(found.Safe, " && "))
	if scripts {
		options = "[y: without install scripts, a: with them, N]"
		f.Notes().Printf("  a: %s\n", strings.Join(found.Whole, " && "))
	}

	answer, err := f.Choose(strings.Join(found.Locks, ", ")+" is here: install what it names before agents work? "+options, scripts)
	switch answer {
	case app.Always:
		return found.Whole, err
	case app.Yes:
		return found.Safe, err
	}
	return nil, err
}
