// Package workflow is `uwf workflow`: checking definitions and keeping them in the
// store. Its Resolver finds the workflow that a reference means, for every command
// that takes one. It never starts a thread.
package workflow

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/examples"
)

// NewCmdWorkflow makes `uwf workflow`.
func NewCmdWorkflow(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "workflow",
		Short: "Check workflow definitions and keep them in the store",
		Long: `Check workflow definitions and keep them in the store.

A workflow is named by its hash, by the path of a file, by a name in the folders
.uwf/workflows, .workflow and .workflows (from here up to the repository's root; as
NAME.yaml or NAME/index.yaml), by a name in the registry, or as one that uwf has with it
(` + strings.Join(examples.Workflows(), ", ") + `), in this order.`,
		Example: "  uwf workflow new fix-bugs\n  uwf workflow validate solve-issue.yaml\n  uwf workflow put solve-issue.yaml\n  uwf workflow show solve-issue",
	}, NewCmdNew(f, nil), NewCmdValidate(f, nil), NewCmdTest(f, nil), NewCmdPut(f, nil), NewCmdList(f, nil), NewCmdShow(f, nil), NewCmdGraph(f, nil),
		NewCmdHistory(f, nil), NewCmdRollback(f, nil), NewCmdRemove(f, nil), NewCmdSchema(f, nil))
}
