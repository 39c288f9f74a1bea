// Package examples holds workflows and the demo's files, embedded so that the
// binary has them with it.
package examples

import "embed"

// Files are the example workflows and the demo's repository, issue and cassette, and
// the workflow files for a forge (github/uwf.yml, github/two-jobs.yml).
//
//go:embed *.yaml demo github
var Files embed.FS

// Workflows are the names of the workflows that run in any repository: each is the file
// NAME.yaml.
func Workflows() []string { return []string{"solve-issue", "review-pr", "triage", "approve-deploy"} }
