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
	Do   string `payload:"do"`   // DoResume or DoPoke
	Role string `payload:"role"` // whom it was said to
	// Question is what a role had asked; empty: none had.
	Question string `payload:"question,optional"`
	Text     string `payload:"text"`        // may be empty: it was only let go on
	By       *By    `payload:"by,optional"` // nil: nobody knows
	AtMs     int64  `payload:"atMs"`        // milliseconds since 1970
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
type Answer struct {
	Words []Word `payload:"words"`
}

// MaxWords is how often a thread can be spoken to without a step.
const MaxWords = 100

// Node makes the node, see Start.Node for at.
func (a Answer) Node(at time.Time) (node.Node, node.Hash, error) {
	return newRecord(AnswerSchema, "", a, at)
}

// ParseAnswer reads an answer, see ParseStart.
func ParseAnswer(n node.Node) (a Answer, err error) {
	err = readRecord("Answer", n, n.Type == AnswerSchema, false, &a)
	if err == nil && (len(a.Words) == 0 || len(a.Words) > MaxWords) {
		err = fmt.Errorf("%w: words of an Answer must be a list of 1 to %d words", ErrNotRecord, MaxWords)
	}
	return a, err
}
