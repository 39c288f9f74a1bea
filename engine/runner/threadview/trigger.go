package threadview

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
)

// Trigger is what started a thread, as its StartNode keeps it: frozen then, and never
// asked for again. Titles are clean already. Event, Repo, Actor, URL, Author and AuthorID
// are only written here: package reading reads who it was.
type Trigger struct {
	Event  string
	Repo   string
	Actor  string
	URL    string
	Run    string // the job that started it
	Number int    // the issue or pull request that it is about; 0: none
	Pull   bool
	Title  string
	// Author wrote the issue or pull request.
	Author   string
	AuthorID int64
	// Former is the pull request of an earlier thread about the same; 0: none.
	Former int
	// Branch is a pull request's own branch, which the thread works on.
	Branch string
}

// Names in the StartNode's trigger.
const (
	trigRun    = "run"
	trigKind   = "kind"
	trigTitle  = "title"
	trigBranch = "branch"
	trigFormer = "formerPull"

	kindIssue = "issue"
	kindPull  = "pr"
)

func (t Trigger) subjectKind() string {
	if t.Pull {
		return kindPull
	}
	return kindIssue
}

// Payload is what goes into the StartNode.
func (t Trigger) Payload() map[string]any {
	out := map[string]any{}
	for name, v := range map[string]string{
		"event": t.Event, "repo": t.Repo, reading.TriggerActor: t.Actor, "url": t.URL, trigRun: t.Run, trigTitle: t.Title, trigBranch: t.Branch, reading.TriggerAuthor: t.Author,
	} {
		if v != "" {
			out[name] = v
		}
	}
	for name, n := range map[string]int64{reading.TriggerNumber: int64(t.Number), reading.TriggerAuthorID: t.AuthorID, trigFormer: int64(t.Former)} {
		if n > 0 {
			out[name] = n
		}
	}
	if t.Number > 0 {
		out[trigKind] = t.subjectKind()
	}
	return out
}

// ReadTrigger reads a StartNode's trigger. Anybody who can push the state branch can
// have written it: what is no such value counts as not there.
func ReadTrigger(m map[string]any) Trigger {
	text := func(name string) string { s, _ := m[name].(string); return s }
	number := func(name string) int {
		n, _ := m[name].(int64)
		if n < 0 || n >= maxNumber {
			return 0
		}
		return int(n)
	}
	return Trigger{
		Run: text(trigRun), Number: number(reading.TriggerNumber), Pull: text(trigKind) == kindPull,
		Title: sanitize.Line(text(trigTitle)), Branch: text(trigBranch), Former: number(trigFormer),
	}
}

const maxNumber = 1 << 31

// SubjectKey is the part of a thread's key that names what it is about.
func SubjectKey(pull bool, number int) string {
	return fmt.Sprintf("%s/%d", Trigger{Pull: pull}.subjectKind(), number)
}

// IsAbout reports whether a key is that of a thread, or of a fork of one, about a subject.
func IsAbout(key, subject string) bool {
	_, rest, ok := strings.Cut(key, "/")
	return ok && (rest == subject || strings.HasPrefix(rest, subject+"/"))
}
