// Command manpages writes a manual page for each command of uwf, of the same texts that
// --help prints. Releases hold the pages; no page needs a program of its own to be made.
//
//	go run ./cmd/uwf/internal/manpages v1.2.3 man1
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

func main() {
	if err := writePages(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "manpages: %v\n", err)
		os.Exit(1)
	}
}

// writePages writes the pages of all commands into a folder, which it makes.
func writePages(args []string) error {
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return fmt.Errorf("it takes a version and a folder, as in: manpages v1.2.3 man1")
	}
	if err := os.MkdirAll(args[1], 0o755); err != nil {
		return fmt.Errorf("make the folder of the pages: %w", err)
	}
	return writeCommand(cli.NewRoot(app.NewAt(".", nil, app.IO{})), args[0], args[1])
}

// writeCommand writes the page of a command, and those of the ones below it.
func writeCommand(cmd *cobra.Command, version, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(makePage(cmd, version)), 0o644); err != nil {
		return fmt.Errorf("write the page of %s: %w", cmd.CommandPath(), err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeCommand(sub, version, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageName is the page of a command, as git has it: uwf-thread-list.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// makePage is a command's page, as roff with the man macros.
func makePage(cmd *cobra.Command, version string) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(pageName(cmd)), "uwf "+version, escapeRoff(pageName(cmd)), escapeRoff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n.SH DESCRIPTION\n", escapeRoff(cmd.UseLine()))
	for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
		if paragraph = strings.Trim(paragraph, "\n"); strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			writeVerbatim(&b, paragraph) // columns
		} else if paragraph != "" {
			b.WriteString(".PP\n" + escapeRoff(paragraph) + "\n")
		}
	}
	if cmd.Long == "" {
		b.WriteString(escapeRoff(cmd.Short) + ".\n")
	}
	b.WriteString(".SH OPTIONS\n")
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { writeFlag(&b, f) })
	}
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		writeVerbatim(&b, cmd.Example)
	}
	writeOthers(&b, cmd)
	return b.String()
}

// writeFlag writes an option: its names, its value and what it does.
func writeFlag(b *strings.Builder, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	b.WriteString(".TP\n")
	if f.Shorthand != "" {
		b.WriteString(`\fB\-` + escapeRoff(f.Shorthand) + `\fR, `)
	}
	b.WriteString(`\fB\-\-` + escapeRoff(f.Name) + `\fR`)
	if value != "" {
		b.WriteString(` \fI` + escapeRoff(value) + `\fR`)
	}
	b.WriteString("\n" + escapeRoff(usage) + "\n")
}

// writeVerbatim writes lines as they are.
func writeVerbatim(b *strings.Builder, lines string) {
	b.WriteString(".PP\n.nf\n" + escapeRoff(lines) + "\n.fi\n")
}

// writeOthers names the pages of the command above and of those below.
func writeOthers(b *strings.Builder, cmd *cobra.Command) {
	var others []string
	if cmd.HasParent() {
		others = append(others, pageName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, pageName(sub))
		}
	}
	for i, other := range others {
		others[i] = `\fB` + escapeRoff(other) + `\fR(1)`
	}
	b.WriteString(".SH SEE ALSO\n" + strings.Join(others, ",\n") + "\n")
}

// escapeRoff makes text that roff prints as it is: no escapes, no requests at the beginning
// of a line, and the characters of ASCII, which typesetting replaces: an option or a quoted
// word can be copied.
func escapeRoff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n.", "\n\\&.").Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}
