package statefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// maxDayRows is how many lines a day's page has, the newest: it is written anew with each.
const maxDayRows = 1000

// DayPage is the page for readers of a history file: the same lines, with the command that
// shows each thread. It is derived, and never read back.
func DayPage(data []byte) ([]byte, error) {
	var lines []Ended
	err := ParseHistory(data, func(e Ended) error {
		lines = append(lines, e)
		if len(lines) == maxDayRows {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	slices.Reverse(lines)
	var b bytes.Buffer
	b.WriteString("# Threads that ended\n\nTimes are UTC. What a row's command shows has the rest (of one that was cancelled, how it stood\nbefore), and `git log <commit> -- threads/<thread>` the thread commit by commit.\n\n")
	b.WriteString("| ended | what it was about | result | asked by | tokens | cost | pull request | look at it |\n|:--|:--|:--|:--|--:|--:|:--|:--|\n")
	if all := bytes.Count(data, []byte{'\n'}); all > len(lines) {
		fmt.Fprintf(&b, "| | %d more, earlier: see the file beside this one | | | | | | |\n", all-len(lines))
	}
	for _, e := range lines {
		e.writeRow(&b)
	}
	return b.Bytes(), nil
}

var errEnough = errors.New("enough")

// writeRow writes one line of the table.
func (e *Ended) writeRow(b *bytes.Buffer) {
	fmt.Fprintf(b, "| %s | %s | %s |", text.Time(time.UnixMilli(e.CompletedAt)), cmp.Or(tableCell(e.Title), "–"), e.describeEnd())
	asked := "–"
	if e.By != nil {
		asked = markdown.Link(tableCell(e.By.Account()), e.By.URL)
	}
	fmt.Fprintf(b, " %s |", asked)
	if u := e.Used; u != nil {
		fmt.Fprintf(b, " %d | %s |", u.Tokens, text.Dollars(u.CostUSD, u.Unpriced))
	} else {
		b.WriteString(" – | – |")
	}
	pull, commit := "–", ""
	repo := e.repositoryAddress()
	if e.PR != 0 {
		pull = markdown.Link(fmt.Sprintf("#%d", e.PR), repo+fmt.Sprintf("/issues/%d", e.PR)) // forges lead from there to the pull request
	}
	if link := markdown.Link("commit", repo+"/commit/"+e.Commit); link != "commit" {
		commit = link + ": "
	}
	fmt.Fprintf(b, " %s | %s`git show %s:%s` |\n", pull, commit, e.Commit, layout.IndexPath(e.Thread))
}

// describeEnd says how a thread ended.
func (e *Ended) describeEnd() string {
	what := e.Reason
	if e.Reason == ReasonEnded {
		what = cmp.Or(tableCell(e.Result), e.Reason)
	}
	if e.ClosedBy != nil {
		what += " by " + tableCell(e.ClosedBy.Account())
	}
	if note := tableCell(e.Note); note != "" {
		what += ": " + note
	}
	return what
}

// maxCell bounds what others wrote in a cell, in bytes with the ellipsis.
const maxCell = 203

// tableCell is a text of others on one line of a table.
func tableCell(s string) string {
	return markdown.Escape(text.Cut(commitmsg.Line(s), maxCell))
}

// repositoryAddress is the web address of the repository that the thread was started in, as far
// as where it was started tells.
func (e *Ended) repositoryAddress() string {
	if e.By == nil || !markdown.IsAddress(e.By.URL) {
		return ""
	}
	for _, part := range []string{"/issues/", "/pull/", "/pulls/", "/actions/"} {
		if repo, _, ok := strings.Cut(e.By.URL, part); ok {
			return repo
		}
	}
	return ""
}
