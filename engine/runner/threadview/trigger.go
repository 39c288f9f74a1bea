package threadview

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
)

// Trigger is what started a thread, as its StartNode keeps it: frozen then, and never
// asked for again. Titles are clean already.
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
	trigEvent  = "event"
	trigRepo   = "repo"
	trigActor  = reading.TriggerActor
	trigURL    = "url"
	trigRun    = "run"
	trigNumber = reading.TriggerNumber
	trigKind   = "kind"
	trigTitle  = "title"
	trigBranch = "branch"
	trigFormer = "formerPull"
	trigAuthor = reading.TriggerAuthor
	trigID     = reading.TriggerAuthorID

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
	out := map[string]any{trigEvent: t.Event, trigRun: t.Run}
	for name, v := range map[string]string{trigRepo: t.Repo, trigActor: t.Actor, trigURL: t.URL, trigTitle: t.Title, trigBranch: t.Branch, trigAuthor: t.Author} {
		if v != "" {
			out[name] = v
		}
	}
	if t.AuthorID > 0 {
		out[trigID] = t.AuthorID
	}
	if t.Former > 0 {
		out[trigFormer] = int64(t.Former)
	}
	if t.Number > 0 {
		out[trigNumber], out[trigKind] = int64(t.Number), t.subjectKind()
	}
	return out
}

// ReadTrigger reads a StartNode's trigger. Anybody who can push the state branch can
// have written it: what is no such value counts as not there.
func ReadTrigger(m map[string]any) Trigger {
	text := func(name string) string { s, _ := m[name].(string); return s }
	return Trigger{
		Event: text(trigEvent), Repo: text(trigRepo), Actor: text(trigActor), URL: text(trigURL), Run: text(trigRun),
		Number: toNumber(m[trigNumber]), Pull: text(trigKind) == kindPull, Title: sanitize.Title(text(trigTitle)), Branch: text(trigBranch),
		Author: text(trigAuthor), AuthorID: accountID(m[trigID]), Former: toNumber(m[trigFormer]),
	}
}

const maxNumber = 1 << 31

// toNumber reads a positive whole number, 0 where it is none.
func toNumber(v any) int {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case uint64:
		n = int64(min(v, maxNumber))
	case float64:
		if v != float64(int64(v)) {
			return 0
		}
		n = int64(v)
	case json.Number:
		n, _ = v.Int64()
	}
	if n < 0 || n >= maxNumber {
		return 0
	}
	return int(n)
}

// accountID reads an account's id, 0 where it is none.
func accountID(v any) int64 {
	n, _ := v.(int64)
	return max(n, 0)
}

// SubjectKey is the part of a thread's key that names what it is about.
func SubjectKey(pull bool, number int) string {
	return fmt.Sprintf("%s/%d", Trigger{Pull: pull}.subjectKind(), number)
}

// IsAbout reports whether a key is that of a thread, or of a fork of one, about a subject.
func IsAbout(key, subject string) bool {
	_, rest, ok := strings.Cut(key, "/")
	return ok && (rest == subject || strings.HasPrefix(rest, subject+"/"))
}
