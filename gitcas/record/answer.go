package record

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

// What people do with words, as Word.Do has it.
const (
	DoResume = "resume" // answered a thread that waited, or let one go on that had ended
	DoPoke   = "poke"   // had the last step done again
)

// Word is what one person said to a thread.
type Word struct {
	Do   string // DoResume or DoPoke
	Role string // whom it was said to
	// Question is what a role had asked; empty: none had.
	Question string
	Text     string // may be empty: it was only let go on
	By       *By    // nil: nobody knows
	AtMs     int64  // milliseconds since 1970
}

// Did is what somebody did with a word, as it is shown.
func (w Word) Did() string {
	switch {
	case w.Do == DoPoke:
		return "had the step done again"
	case w.Question != "":
		return "answered"
	}
	return "let it go on"
}

// Answer is what people said to a thread between two steps, the oldest first. It has at
// least one word, and at most MaxWords.
type Answer struct{ Words []Word }

// MaxWords is how often a thread can be spoken to without a step.
const MaxWords = 100

// Node makes the node, see Start.Node for at.
func (a Answer) Node(at time.Time) (node.Node, node.Hash, error) {
	list := make([]any, len(a.Words))
	for i, w := range a.Words {
		p := map[string]any{"do": w.Do, "role": w.Role, "text": w.Text, "atMs": w.AtMs}
		if w.Question != "" {
			p["question"] = w.Question
		}
		if w.By != nil {
			p["by"] = w.By.toPayload()
		}
		list[i] = p
	}
	return node.New(AnswerSchema, map[string]any{"words": list}, at)
}

// ParseAnswer reads an answer, see ParseStart.
func ParseAnswer(n node.Node) (Answer, error) {
	r := openNode("Answer", n, n.Type == AnswerSchema)
	v, _ := r.takeField("words")
	list, _ := v.([]any)
	r.checkField(len(list) > 0 && len(list) <= MaxWords, "words", fmt.Sprintf("a list of 1 to %d words", MaxWords))
	a := Answer{Words: make([]Word, 0, len(list))}
	for _, e := range list {
		m, ok := e.(map[string]any)
		r.checkField(ok, "words", "a list of objects")
		w := &reader{what: "word of an Answer", m: m}
		a.Words = append(a.Words, Word{
			Do: w.readText("do"), Role: w.readText("role"), Question: w.optionalText("question"), Text: w.readText("text"), By: w.readBy(), AtMs: w.readInteger("atMs"),
		})
		r.takeComplaint(w)
	}
	return a, r.firstComplaint()
}
