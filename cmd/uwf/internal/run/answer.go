package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/board"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// answerHere asks the person on the terminal what a role asks, and lets the thread go on with
// the answer. No answer leaves the thread as it is.
func (o *Options) answerHere(ctx context.Context, show *board.Progress, id gitcas.ThreadID, stepped error) (answered bool, err error) {
	var waits *life.DeedError
	f := o.Factory
	if !errors.As(stepped, &waits) || waits.Kind != life.KindSuspended || !f.IO.CanAsk() || ctx.Err() != nil ||
		!slices.ContainsFunc(waits.Next, func(v life.Verb) bool { return v.Do == life.Resume && v.Needs == life.NeedsText }) {
		return false, nil
	}
	defer show.Hold()()
	t, err := lookup.Find(ctx, f.Store, string(id))
	if err != nil {
		return false, err
	}
	choices, err := choicesOf(ctx, t)
	if err != nil {
		return false, err
	}
	notes := f.Notes()
	notes.Println()
	notes.Bold(waits.Role + " asks:")
	notes.Printf("\n%s\n", numberChoices(strings.TrimSpace(waits.Reason), choices))
	question := "Your answer (empty: later): "
	if len(choices) > 0 {
		question = fmt.Sprintf("Your answer, 1 to %d or in words (empty: later): ", len(choices))
	}
	words, err := app.AskWords(f, question)
	if words == "" || errors.Is(err, deadline.ErrStopped) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if n, err := strconv.Atoi(words); err == nil && n >= 1 && n <= len(choices) {
		words = choices[n-1]
	}
	w, err := person.NewWorker(ctx, f, worker.Options{})
	if err != nil {
		return false, err
	}
	return true, w.Resume(ctx, engine.ResumeRequest{Thread: id, Text: words})
}

// numberChoices puts a number before each choice: where the question lists it, else below.
func numberChoices(question string, choices []string) string {
	lines := strings.Split(question, "\n")
	for i, c := range choices {
		c = text.OneLine(c)
		at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(strings.TrimLeft(line, " -*")) == c })
		if at < 0 {
			at = len(lines)
			lines = append(lines, "")
		}
		lines[at] = fmt.Sprintf("  %d  %s", i+1, c)
	}
	return strings.Join(lines, "\n")
}

// choiceFields are the fields of an output that list what a person may choose from.
func choiceFields() []string { return []string{"choices", "options"} }

// maxChoices bounds the choices that are offered.
const maxChoices = 20

// choicesOf are what the role that asks offers: a list of texts in its output.
func choicesOf(ctx context.Context, t *lookup.Thread) ([]string, error) {
	chain, err := t.View.ReadChain(ctx, t.ID)
	if err != nil || len(chain.Steps) == 0 {
		return nil, err
	}
	last := chain.Steps[len(chain.Steps)-1]
	n, err := t.View.In(ctx, gitcas.Place{Thread: t.ID, Of: last.Hash}).Get(last.Step.Output)
	if errors.Is(err, node.ErrNotFound) {
		return nil, nil // an old chain, without it
	}
	if err != nil {
		return nil, err
	}
	output, _ := n.Payload.(map[string]any)
	for _, field := range choiceFields() {
		list, _ := output[field].([]any)
		var out []string
		for _, item := range list {
			if s, ok := item.(string); ok && strings.TrimSpace(s) != "" && len(out) < maxChoices {
				out = append(out, s)
			}
		}
		if len(out) > 1 {
			return out, nil
		}
	}
	return nil, nil
}
