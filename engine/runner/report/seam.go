package report

// Comment is the sticky comment.
func Comment(t Thread) string { return Marker(t.ID) + "\n" }

// Summary is the job's summary.
func Summary(t Thread) string { return Comment(t) }

// Sentence says what is going on, as one line of plain text.
func Sentence(t Thread) string { return string(t.State) }

// PullTitle is the pull request's title; issue is the title of the issue that the
// thread came from, or empty.
func PullTitle(t Thread, issue string) string { return issue + t.Workflow }

// PullBody is the pull request's body.
func PullBody(t Thread) string { return Comment(t) }

// ReplyKind is what a short answer to somebody's command says.
type ReplyKind string

// The kinds of answers.
const (
	Refused  ReplyKind = "refused"   // who asked may not do that
	Unknown  ReplyKind = "unknown"   // there is no such command
	NoThread ReplyKind = "no-thread" // there is no thread here to do it with
	NotNow   ReplyKind = "not-now"   // the thread's state doesn't allow it
	Done     ReplyKind = "done"      // it is done, and Why says what follows
)

// Reply is a short answer to a command in a comment.
type Reply struct {
	Kind ReplyKind
	// Verb is the command, without /uwf; Login who gave it.
	Verb, Login string
	// Comment is the id of the comment that it answers.
	Comment int64
	// Thread is the thread that it is about; ID is empty where there is none.
	Thread Thread
	// Why is more than the kind says; plain text.
	Why string
}

// Markdown is the answer as a comment. It begins with ReplyMarker(r.Comment).
func (r Reply) Markdown() string { return ReplyMarker(r.Comment) + "\n" }
