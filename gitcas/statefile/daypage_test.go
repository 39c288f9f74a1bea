package statefile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/record"
)

func TestDayPage(t *testing.T) {
	at := time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC).UnixMilli()
	first := ended(1)
	first.Title, first.CompletedAt, first.Result, first.PR = "Fix *slugs* | @team <b>\u202e", at, "approved", 12
	first.By = &record.By{Kind: record.ByForge, Login: "alice", ID: 1, URL: "https://forge.example/o/r/issues/7#issuecomment-9"}
	first.Used = &Cost{Steps: 3, Tokens: 12345, CostUSD: 0.5}
	second := ended(2)
	second.Reason, second.CompletedAt, second.Note, second.Title, second.Result, second.PR, second.Used = ReasonCancelled, at+60_000, "by\nhand | "+strings.Repeat("ü", 200), "", "", 3, nil
	second.By = &record.By{Kind: record.ByForge, Login: "mallory", URL: "https://forge.example/o/r/issues/7) [x](javascript:1"}
	second.ClosedBy = &record.By{Kind: record.ByLocal, Name: strings.Repeat("n", 200)}
	var data []byte
	for _, e := range []Ended{first, second} {
		line, err := EncodeEnded(e)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, line...)
	}
	page, err := DayPage(data)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(page)), "\n")
	rows = rows[len(rows)-2:]
	want := []string{
		fmt.Sprintf("| 2026-11-20 23:59:00 UTC | Fix \\*slugs\\* \\| ＠team \\<b>\uFFFD | approved | [alice (id 1)](%s) | 12345 | $0.5000 | [#12](https://forge.example/o/r/issues/12) | [commit](https://forge.example/o/r/commit/%s): `git show %[2]s:threads/%s/pages/index.md` |", first.By.URL, first.Commit, first.Thread),
		fmt.Sprintf("| 2026-11-21 00:00:00 UTC | – | cancelled by %s…, as git on their machine says: by hand \\| %s… | mallory | – | – | #3 | `git show %s:threads/%s/pages/index.md` |", strings.Repeat("n", 100), strings.Repeat("ü", 95), second.Commit, second.Thread),
	}
	for i, row := range rows {
		if row != want[i] {
			t.Errorf("row %d is\n%s\nwant\n%s", i, row, want[i])
		}
	}
	if _, err := DayPage(append(data, "{\n"...)); err == nil {
		t.Error("a page of a damaged file")
	}

	long, err := DayPage(bytes.Repeat(data, 600))
	if n := strings.Count(string(long), "git show "); err != nil || n != maxDayRows+0 || !strings.Contains(string(long), "| | 200 more, earlier") {
		t.Errorf("%d rows, %v\n%.600s", n, err, long)
	}
}
