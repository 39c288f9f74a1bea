package report

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

const markerPrefix = "<!-- uwf:thread="

// markerLine is a marker as Marker writes it, at the very beginning of a text: one
// further in is a quotation, or somebody's attempt to pass for a thread's comment.
var markerLine = lazyregexp.New(`\A` + markerPrefix + `([0-9A-Za-z]{26}) -->`)

// Marker is what the comment and the pull request of a thread begin with, so that
// a later job finds them although their numbers were lost. Forges don't show it.
func Marker(id string) string { return markerPrefix + bareWord(id) + " -->" }

// FindMarker is the thread whose comment or pull request a body is.
func FindMarker(body string) (id string, ok bool) {
	found := markerLine.FindStringSubmatch(body)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// ReplyMarker is what an answer to the comment with an id begins with: a job that
// is run again finds by it that the answer was given.
func ReplyMarker(comment int64) string { return fmt.Sprintf("<!-- uwf:reply=%d -->", comment) }

// NoteMarker is what a note of a run begins with that belongs to no thread: a later job of the run
// finds by it that the issue was told.
func NoteMarker(run string) string { return "<!-- uwf:note=" + bareWord(run) + " -->" }

var refusal = lazyregexp.New(`\A<!-- uwf:reply=[0-9]+ -->\r?\n` + lock)

// IsRefusal reports an answer to somebody that they may not give commands.
func IsRefusal(body string) bool { return refusal.MatchString(body) }

// bareWord is a text without what could end a comment or begin another line.
func bareWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, s)
}
