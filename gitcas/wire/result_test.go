package wire

import (
	"errors"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// TestWorst: of an atomic push's refusals the one that says most is reported.
func TestWorst(t *testing.T) {
	text := "error: cannot lock ref 'refs/heads/b': reference already exists\n"
	res := newPushResult(PushRequest{Updates: []RefUpdate{{Name: "refs/heads/a"}, {Name: "refs/heads/b"}, {Name: "refs/heads/c"}}})
	for _, name := range res.order {
		detail, kind := fault.TranslateRefusal(name, "atomic transaction failed", text)
		res.noteRefused(name, &Error{Ref: name, Kind: kind, Detail: detail})
	}
	var e *Error
	if err := res.asError("x"); !errors.As(err, &e) || e.Ref != "refs/heads/b" || !errors.Is(e.Kind, ErrLostRace) {
		t.Errorf("reported: %v", err)
	}
	res.noteRefused("refs/heads/c", &Error{Ref: "refs/heads/c", Kind: ErrProtected, Detail: "hook declined"})
	if err := res.asError("x"); !errors.As(err, &e) || e.Ref != "refs/heads/c" {
		t.Errorf("reported: %v", err)
	}
}
