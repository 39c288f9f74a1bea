package program

import (
	"runtime"
	"runtime/debug"
)

// Build is what a binary knows of itself: the JSON of `uwf version`.
type Build struct {
	Version  string `json:"version"` // a release's own, else Go's for the module; "(devel)" for one of no version
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the files were not those of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"` // linux/amd64
}

// ReadBuild asks the binary. A release says its version and commit itself: Go writes neither
// into what is built by the path of a package.
func ReadBuild(release, commit string) Build {
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
