package servers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// page has the table, between two marks.
const (
	page      = "../../../../docs/servers.md"
	tableFrom = "<!-- the table: .ci/run servers -->\n"
	tableTo   = "<!-- its end -->\n"
)

// compareTable compares the rows that were checked with the page's, or writes them there. Rows
// that were not checked stay as they are recorded; the versions are those of the last writing.
func compareTable(t *testing.T, rows []row, done []*result) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(data), tableFrom)
	table, after, ends := strings.Cut(rest, tableTo)
	if !begins || !ends {
		t.Fatalf("%s has no marks for the table", page)
	}
	recorded := map[string]string{}
	for line := range strings.Lines(table) {
		recorded[cells(line)[0]] = line
	}
	written := tableHead()
	for i, r := range rows {
		line := recorded[r.name]
		if checked := done[i]; checked != nil {
			now := r.line(checked)
			if line == "" || !slices.Equal(withoutVersion(cells(now)), withoutVersion(cells(line))) {
				if !*update {
					t.Errorf("%s has\n%swant\n%srun the test with -update", page, line, now)
				}
				line = now
			}
		}
		written += line
		delete(recorded, r.name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+tableFrom+written+tableTo+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := tableHead(); !strings.HasPrefix(table, want) {
		t.Errorf("the table's head is not\n%s", want)
	}
}

// cells are those of a line of the table.
func cells(line string) []string {
	parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// withoutVersion leaves the second cell out.
func withoutVersion(of []string) []string {
	return slices.Delete(slices.Clone(of), 1, min(2, len(of)))
}

func tableHead() string {
	head := []string{"server", "version"}
	for _, d := range deeds {
		head = append(head, strings.TrimSpace(d.name))
	}
	head = append(head, "what the user reads")
	return tableLine(head) + "|" + strings.Repeat("---|", len(head)) + "\n"
}

func tableLine(of []string) string { return "| " + strings.Join(of, " | ") + " |\n" }

// line is a row's line of the table.
func (r *row) line(of *result) string {
	line := []string{r.name, of.version}
	var reads []string
	for _, d := range deeds {
		read, tried := of.reads[d.name]
		switch {
		case !tried:
			line = append(line, "–")
		case read == "":
			line = append(line, "✓")
		default:
			line = append(line, "✗")
			reads = append(reads, fmt.Sprintf("%s: %s", strings.TrimSpace(d.name), shorten(read)))
		}
	}
	return tableLine(append(line, strings.Join(reads, "; ")))
}

// shorten keeps the first words of a message, and what would be Markdown as it is.
func shorten(message string) string {
	const most = 420
	words := strings.Fields(strings.NewReplacer("|", "&#124;", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(message))
	short := ""
	for _, word := range words {
		if len(short)+len(word) > most {
			return short + " …"
		}
		short = strings.TrimSpace(short + " " + word)
	}
	return short
}
