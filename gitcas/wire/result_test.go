package wire

import (
	"errors"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// TestWorst: of an atomic push's refusals the one that says most is reported.
func TestWorst(t *testing.T) {
	text := "error: cannot lock ref 'refs/heads/b': reference already exists\n"
	updates := []RefUpdate{{Name: "refs/heads/a"}, {Name: "refs/heads/b"}, {Name: "refs/heads/c"}}
	res := &PartialError{Refused: map[string]*RemoteError{}}
	for _, u := range updates {
		detail, kind := fault.TranslateRefusal(u.Name, "atomic transaction failed", text)
		res.Refused[u.Name] = &RemoteError{Ref: u.Name, Kind: kind, Detail: detail}
	}
	var e *RemoteError
	if err := res.asError(updates); !errors.As(err, &e) || e.Ref != "refs/heads/b" || !errors.Is(e.Kind, ErrLostRace) {
		t.Errorf("reported: %v", err)
	}
	res.Refused["refs/heads/c"] = &RemoteError{Ref: "refs/heads/c", Kind: ErrProtected, Detail: "hook declined"}
	if err := res.asError(updates); !errors.As(err, &e) || e.Ref != "refs/heads/c" {
		t.Errorf("reported: %v", err)
	}
}
