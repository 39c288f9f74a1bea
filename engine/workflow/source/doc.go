// Package source reads the files that a definition consists of, and shows what is wrong in
// them: file, line and column, the line with a caret below it, and a fix. It never opens a
// file itself and knows nothing of workflows.
package source
