package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has a page, which roff reads without a warning where it is installed.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "share", "man1")
	if err := writePages([]string{"v1.2.3", dir}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	groff, lookErr := exec.LookPath("groff")
	for _, file := range pages {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page, name := string(b), strings.TrimSuffix(filepath.Base(file), ".1")
		if !strings.HasPrefix(page, `.TH "`+strings.ToUpper(name)+`" 1 "" "uwf v1.2.3"`+"\n.SH NAME\n"+strings.ReplaceAll(name, "-", `\-`)+` \- `) {
			t.Errorf("%s begins with %.100s", name, page)
		}
		if strings.Contains(page, "\n\n") {
			t.Errorf("%s has an empty line", name)
		}
		for other := range strings.SplitSeq(page[strings.Index(page, ".SH SEE ALSO\n"):], `\fB`) {
			other, _, isPage := strings.Cut(strings.ReplaceAll(other, `\-`, "-"), `\fR(1)`)
			if _, err := os.Stat(filepath.Join(dir, other+".1")); isPage && err != nil {
				t.Errorf("%s names another page: %v", name, err)
			}
		}
		if lookErr != nil {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), groff, "-K", "utf8", "-man", "-ww", "-z", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	if lookErr != nil {
		t.Skip("NOT TESTED: groff is not installed, so nobody read the pages")
	}
}

func TestMakePage(t *testing.T) {
	cmd := &cobra.Command{
		Use: "take FILE", Short: "Take a file", Run: func(*cobra.Command, []string) {},
		Long: ".TH forged\n'quoted' \\fBnot bold ^~\n.br\n\n  --a   column\n\nThe end.", Example: "  take --last-one 'x\\n'",
	}
	cmd.Flags().StringP("last-one", "l", "", "take the last `ONE`")
	cmd.Flags().Bool("old", false, "gone")
	cmd.Flags().Lookup("old").Hidden = true
	const want = `.TH "TAKE" 1 "" "uwf v1"
.SH NAME
take \- Take a file
.SH SYNOPSIS
take FILE [flags]
.SH DESCRIPTION
.PP
\&.TH forged
\(aqquoted\(aq \efBnot bold \(ha\(ti
\&.br
.PP
.nf
  \-\-a   column
.fi
.PP
The end.
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for take
.TP
\fB\-l\fR, \fB\-\-last\-one\fR \fIONE\fR
take the last ONE
.SH EXAMPLES
.PP
.nf
  take \-\-last\-one \(aqx\en\(aq
.fi
.SH SEE ALSO

`
	if got := makePage(cmd, "v1"); got != want {
		t.Errorf("%s", got)
	}
}

func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"v1"}, {"v1", ""}, {"", "dir"}, {"v1", "dir", "more"}, {"v1", file}} {
		if err := writePages(args); err == nil {
			t.Errorf("%q: taken", args)
		}
	}
}
