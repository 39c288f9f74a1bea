// Package version is `uwf version`: which uwf this is, and how it was built. It opens
// nothing.
package version

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
)

// Options are what `uwf version` works with.
type Options struct{ Factory *app.Factory }

// NewCmdVersion makes `uwf version`. A runF that is not nil replaces the run.
func NewCmdVersion(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:   "version",
		Short: "Say which uwf this is, and how it was built",
		Long: `Say which uwf this is: its version, the commit that it was built from, the version of
Go that built it, and the platform that it was built for. A report of a bug needs these.`,
		Example: "  uwf version\n  uwf version --jq .commit",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, versionRun, func([]string) {}),
	}
}

// Build is what a binary knows of itself: the JSON of `uwf version`.
type Build struct {
	Version  string `json:"version"` // a release's own, else Go's for the module; "(devel)" for one of no version
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the files were not those of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"` // linux/amd64
}

// Read asks the binary. A release says its version and commit itself: Go writes neither
// into what is built by the path of a package.
func Read(release, commit string) Build {
	b := Build{Version: release, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "unknown"
	}
	if ok && b.Commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

func versionRun(_ context.Context, o *Options) error {
	b := Read(o.Factory.Release, o.Factory.Commit)
	return o.Factory.Printer().Print(b, func(w *output.Writer) {
		w.Printf("uwf version %s\n", b.Version)
		if b.Commit != "" {
			w.Printf("commit %s", b.Commit)
			if b.Modified {
				w.Printf(", with changes")
			}
			w.Println()
		}
		w.Printf("%s %s\n", b.Go, b.Platform)
	})
}
