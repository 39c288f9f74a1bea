package report

import (
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/internal/markdown"
)

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

// lock begins an answer to somebody who may not do that.
const lock = "🔒"

// Reply is a short answer to a command in a comment.
type Reply struct {
	Kind ReplyKind
	// Verb is the command, without /uwf; empty: it was none, but what Asked says, as in "the
	// label uwf". Login is who gave it.
	Verb, Asked, Login string
	// Comment is the id of the comment that it answers.
	Comment int64
	// Thread is the thread that it is about; ID is empty where there is none.
	Thread Thread
	// Why is more than the kind says, as Markdown; Unknown and NoThread then say
	// nothing else.
	Why string
}

// Markdown is the answer as a comment. It begins with ReplyMarker(r.Comment), and
// mentions nobody: who wrote the command watches the issue anyway.
func (r Reply) Markdown() string {
	p := newPage(r.Thread)
	p.console = false
	verb := codeSpan("/uwf " + cleanName(r.Verb))
	why := sanitize.Outgoing(r.Why, "", 4_000)
	var body string
	switch r.Kind {
	case Refused:
		if r.Verb == "" {
			verb = upperFirst(cleanName(r.Asked))
		}
		body = joinBlocks(lock+" "+verb+" needs write permission on this repository, and "+codeSpan(cleanName(r.Login))+" doesn't have it, as far as uwf can tell. Nothing was done.", why)
	case Unknown:
		if body = "❔ " + why; why == "" {
			body = joinBlocks("❔ There is no command "+verb+".", event.Verbs())
		}
	case NoThread:
		if body = "❔ " + why; why == "" {
			body = joinBlocks("❔ "+verb+": there is no thread here. Start one:", p.writeCommand("start", ""))
		}
	case NotNow:
		body = joinBlocks("✋ "+verb+": nothing was done.", why)
		if p.ID != "" {
			body = joinBlocks(body, "How the thread stands: "+writeSentence(p.Thread, boldName), p.writeSteering(true))
		}
	default:
		if body = joinBlocks("👍 "+verb+": done.", why); r.Verb == "help" {
			body = joinBlocks("What can be said in a comment, at the beginning of a line:", why)
		}
	}
	if markdown.IsAddress(r.Thread.Links.Comment) && r.Kind != Refused {
		body = joinBlocks(body, "<sub>"+markdown.Link("the thread's comment", r.Thread.Links.Comment)+"</sub>")
	}
	return ReplyMarker(r.Comment) + "\n" + body + "\n"
}
