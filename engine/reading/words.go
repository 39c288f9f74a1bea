package reading

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// ReadAnswer reads what people said to a thread before one of its steps, or, where of
// and h are the same, before its next one.
func ReadAnswer(in func(gitcas.Place) node.Getter, id gitcas.ThreadID, of, h node.Hash) ([]record.Word, error) {
	n, err := in(gitcas.Place{Thread: id, Of: of}).Get(h)
	if err != nil && !errors.Is(err, gitcas.ErrContent) {
		return nil, fmt.Errorf("the answer to thread %s: %w", id, err)
	}
	var a record.Answer
	if err == nil {
		a, err = record.ParseAnswer(n)
	}
	if err == nil && TextSize(a.Words) > MaxPrompt {
		err = fmt.Errorf("it has more than %d bytes", MaxPrompt)
	}
	if err != nil {
		return nil, adviseFork(id, -1, &gitcas.DamagedError{
			What: "threads.yaml", Kind: gitcas.ErrContent, Err: err, Why: fmt.Sprintf("thread %s: node %s is no answer of people: %v", id, h, err),
		})
	}
	return a.Words, nil
}

// adviseFork says what is done about a thread whose entry can't be right.
func adviseFork(id gitcas.ThreadID, steps int, err error) error {
	return life.Advise(err, life.Verb{For: "cancel this thread, and begin another from its steps", Do: life.Fork, Thread: id, Steps: steps})
}

// TextSize is the size of what was said, in bytes.
func TextSize(words []record.Word) int {
	n := 0
	for _, w := range words {
		n += len(w.Text)
	}
	return n
}

// PendingWords are what the thread's next step is to be told.
func (r *Thread) PendingWords() ([]record.Word, error) {
	if r.Entry.Next == nil || r.Entry.Next.Answer == "" {
		return nil, nil
	}
	return ReadAnswer(r.In, r.ID, r.Entry.Next.Answer, r.Entry.Next.Answer)
}

// WordsBefore are what people said before a step.
func (r *Thread) WordsBefore(step node.Hash, s record.Step) ([]record.Word, error) {
	if s.Answer == nil {
		return nil, nil
	}
	return ReadAnswer(r.In, r.ID, step, *s.Answer)
}

// wordsAfter are the words that are not among some others.
func wordsAfter(words, before []record.Word) []record.Word {
	return slices.DeleteFunc(slices.Clone(words), func(w record.Word) bool {
		return slices.ContainsFunc(before, func(b record.Word) bool { return reflect.DeepEqual(w, b) })
	})
}

// quoteWords is what people said, as the role is told it. Who said it is named where it
// matters: where several did, or where a word may be an approval.
func (r *Thread) quoteWords(words []record.Word) string {
	named := r.Def.NeedsApproval() || slices.ContainsFunc(words, func(w record.Word) bool { return !reflect.DeepEqual(w.By, words[0].By) })
	var out []string
	for _, w := range words {
		switch text := strings.TrimSpace(w.Text); {
		case text == "":
		case !named:
			out = append(out, text)
		default:
			// Marked line by line: nobody can speak for another in their own words.
			out = append(out, "From "+NameOf(w.By)+":\n> "+strings.ReplaceAll(text, "\n", "\n> "))
		}
	}
	return strings.Join(out, "\n\n")
}

// NameOf is Name, also of nobody who is known.
func NameOf(by *record.By) string {
	if by == nil {
		return "Somebody"
	}
	return Name(*by)
}

// Name is who somebody is, with the account's id.
func Name(by record.By) string { return text.OneLine(by.Account()) }

// HasHeard reports whether the comment that a person speaks by was taken before: what was
// said once must not count again when its job runs again.
func (r *Thread) HasHeard(p *record.By) (bool, error) {
	if p == nil || p.Kind == record.ByLocal || p.URL == "" {
		return false, nil
	}
	words, err := r.PendingWords()
	if err != nil {
		return false, err
	}
	for _, s := range r.Chain.Steps {
		before, err := r.WordsBefore(s.Hash, s.Step)
		if err != nil {
			return false, err
		}
		words = append(words, before...)
	}
	return slices.ContainsFunc(words, func(w record.Word) bool { return w.By != nil && w.By.Kind != record.ByLocal && w.By.URL == p.URL }), nil
}

// MaxPrompt bounds what one role, or a person, tells the next, in bytes.
const MaxPrompt = 256 << 10
