package thread

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// appendWord adds a word to what people have said to a thread. A thread may be made to wait
// again before the role that asked could work (attempts, limits, the work branch): what it
// was told then still holds. No word with a text is ever dropped: who approves does so
// with all that was said.
func appendWord(id gitcas.ThreadID, d life.Deed, before []record.Word, w record.Word) ([]record.Word, error) {
	words := slices.Concat(before, []record.Word{w})
	for len(words) > record.MaxWords {
		i := slices.IndexFunc(words, func(w record.Word) bool { return strings.TrimSpace(w.Text) == "" && w.Do != record.DoPoke })
		if i < 0 {
			break
		}
		words = slices.Delete(words, i, i+1)
	}
	if size := reading.TextSize(words); len(words) > record.MaxWords || size > reading.MaxPrompt {
		return nil, life.Refuse(d, id, fmt.Sprintf("people have said %d things with %d bytes to it since its last step, and that is as much as one step is told", len(words)-1, size-len(w.Text)),
			life.Verb{For: "let it work", Do: life.Step, Thread: id}, life.Verb{For: "or begin another thread from its steps", Do: life.Fork, Thread: id, Steps: -1})
	}
	return words, nil
}

// answerChange adds an answer to a change, in the place where it waits for the next
// step, and returns its hash.
func answerChange(c *gitcas.Change, v *gitcas.View, id gitcas.ThreadID, a record.Answer) (node.Hash, error) {
	n, h, err := a.Node(v.Time())
	if err != nil {
		return "", fmt.Errorf("what thread %s is told: %w", id, err)
	}
	schema, _ := gitcas.Known(record.AnswerSchema)
	c.Nodes = append(c.Nodes,
		gitcas.PlacedNode{Hash: h, Node: n, Place: gitcas.Place{Thread: id, Of: h}},
		gitcas.PlacedNode{Hash: record.AnswerSchema, Node: schema})
	return h, nil
}
