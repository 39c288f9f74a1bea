package app

import (
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Job is what `uwf action` knows better than the working directory and the files in
// it: the checkout of a CI job may be a stranger's.
type Job struct {
	// Remote is the URL of the store's remote, in place of state.remote.
	Remote string
	// Dialed is that remote, where it was dialed already.
	Dialed wire.Remote
	// Branch is the state branch; empty: as configured.
	Branch string
	// Root is a folder with the default branch's definitions and settings. It stands
	// for the repository, and its settings are trusted.
	Root string
	// Config is the path of the settings file in Root.
	Config string
	// Run names this job over all its re-runs, in place of GITHUB_RUN_ID. It begins with
	// CIRun, the CI run that the job belongs to.
	Run, CIRun string
	// Wrap is put around the store's remote; nil: nothing is.
	Wrap func(wire.Remote) wire.Remote
	// Adjust changes the settings that were read; nil: they stay.
	Adjust func(*config.Config)
}
