package wire

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
)

// Kinds of failure. A *RemoteError matches exactly one of them with errors.Is, but for those
// that are a kind of another one.
var (
	// ErrLostRace: a ref no longer had the expected value.
	ErrLostRace = fault.ErrLostRace
	// ErrDenied: the credentials are missing or may not do this.
	ErrDenied = fault.ErrDenied
	// ErrProtected: a branch rule or a hook of the server refused the push.
	ErrProtected = fault.ErrProtected
	// ErrTooManyRefs: the server takes fewer refs a push, see RefLimitAfter. It is an
	// ErrProtected.
	ErrTooManyRefs = fault.ErrTooManyRefs
	// ErrHidden: the server takes no pushes of that ref. It is an ErrProtected.
	ErrHidden = fault.ErrHidden
	// ErrUnsigned: a rule of the server takes signed commits only. It is an ErrProtected.
	ErrUnsigned = fault.ErrUnsigned
	// ErrTooLarge: a file, or the push, is larger than the server takes. It is an ErrProtected.
	ErrTooLarge = fault.ErrTooLarge
	// ErrSecretRefused: the server's push protection found a secret.
	ErrSecretRefused = fault.ErrSecretRefused
	// ErrUnpack: the server could not read the objects of a push. Nothing was taken.
	ErrUnpack = fault.ErrUnpack
	// ErrNotFound: no such repository or object.
	ErrNotFound = fault.ErrNotFound
	// ErrNotGiven: no ref leads to the object, and the server gives no others, as those of
	// protocol 0 do. It is an ErrNotFound.
	ErrNotGiven = fault.ErrNotGiven
	// ErrUnreachable: no answer, or the connection broke. A push that failed
	// with it may or may not have happened.
	ErrUnreachable = fault.ErrUnreachable
	// ErrUnreadable: the answer is damaged, too large, or no git protocol.
	ErrUnreadable = fault.ErrUnreadable
	// ErrNotAtomic: an atomic push was asked for and the server has none.
	ErrNotAtomic = fault.ErrNotAtomic
	// ErrReadOnly: the files of the repository can't be written where it lies, for
	// their rights or their file system's.
	ErrReadOnly = fault.ErrReadOnly
	// ErrNoProgram: the program that reaches the remote, git or ssh, is not there or
	// can't be run. Nothing was asked.
	ErrNoProgram = fault.ErrNoProgram
	// ErrSHA256: the repository names its objects by SHA-256. Every id here is SHA-1.
	ErrSHA256 = fault.ErrSHA256
	// ErrPromised: the repository is a partial clone, and an object that was asked for is only
	// on the remote that it was cloned from.
	ErrPromised = fault.ErrPromised
	// ErrInvalid: the request itself can't be carried out by any server: a ref
	// name that git refuses, an object that does not match its id.
	ErrInvalid = fault.ErrInvalid
	// ErrInTheWay: RemoteError.InTheWay keeps the ref from being made. It is an ErrInvalid.
	ErrInTheWay = fault.ErrInTheWay
)

// ErrUnconfirmed is an ErrLostRace of which only the refs' values tell: the server said that it
// took a push, and then listed other values. It may have taken the push, and another one after it.
var ErrUnconfirmed = fmt.Errorf("%w: the server took the push and lists another value", ErrLostRace)

// ErrTooLong is an ErrUnreachable of a server that kept answering and did not come to
// an end within DialOptions.Total. To ask it again at once is unlikely to help.
var ErrTooLong = fault.ErrTooLong

// IsOutage reports whether an error may pass by itself: the remote can't be reached, breaks
// off, or wants to be left alone for a while. after is how long; 0: it doesn't say. Who
// ended the request themselves, an address that leads nowhere, and a server that has nothing
// to say to any form of a request, as one whose repository is damaged, are none.
func IsOutage(err error) (after time.Duration, ok bool) {
	if !errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, fault.ErrNoWay) {
		return 0, false
	}
	var e *RemoteError
	if !errors.As(err, &e) {
		return 0, true
	}
	return e.RetryAfter, !e.spoke
}

// RefLimitAfter reports whether a push of so many refs was refused because they are too many, and
// with how many to push again: fewer than were tried, by what the server said or else half.
func RefLimitAfter(err error, tried int) (most int, ok bool) {
	var e *RemoteError
	if tried < 2 || !errors.As(err, &e) || !errors.Is(e, ErrTooManyRefs) {
		return 0, false
	}
	if e.MostRefs > 0 && e.MostRefs < tried {
		return e.MostRefs, true
	}
	return tried / 2, true
}

// RefusalIn returns what the error of a push means if the same push keeps failing with it while all
// its refs keep their old values: then it is neither a race nor an outage. It returns nil if the error
// can be one of these.
func RefusalIn(err error) error {
	var e *RemoteError
	if !errors.As(err, &e) {
		return nil
	}

	refusal := &RemoteError{Op: e.Op, URL: e.URL, Ref: e.Ref, Kind: ErrProtected, Detail: e.Detail}
	switch {
	case e.empty:
		refusal.Detail = "the server ends without a report; its log, or a reference-transaction hook, says why"
	case !errors.Is(e, ErrLostRace) || e.Detail == "" || fault.TellsRace(e.Detail):
		return nil
	case strings.Contains(e.Detail, "already exists"):
		refusal.Kind, refusal.Detail = ErrHidden, fmt.Sprintf("the server lists no %s, though it has it", e.Ref)
	}
	return refusal
}

// Refusals tells from two failures of a push in a row, after which all its refs have their old
// values, that the server refuses it. The zero value has seen none.
type Refusals struct{ last error }

// NoteFailure returns the refusal if the failure before meant one, too; otherwise nil.
func (r *Refusals) NoteFailure(err error) error {
	before := r.last
	if r.last = RefusalIn(err); before == nil {
		return nil
	}
	return r.last
}

// RemoteError is a failed operation on a remote.
type RemoteError struct {
	Op     string // "list refs", "fetch", "push"
	URL    string // the remote, without credentials
	Ref    string // the ref concerned, when it was one
	Kind   error  // one of the Err… sentinels
	Detail string // what the server or the system said, one line
	// RetryAfter is how long the server wants to be left alone; 0: it doesn't say.
	RetryAfter time.Duration
	// MostRefs is how many refs a push may update, of an ErrTooManyRefs; 0: the server
	// doesn't say.
	MostRefs int
	// InTheWay is the full name of the ref that keeps Ref from being made, of an ErrInTheWay.
	InTheWay string

	// spoke: there was an answer, which was not what was asked for, or had nothing in it.
	spoke bool
	// empty: the answer to a push was complete, and had nothing in it.
	empty bool
	cause error // context.Canceled and its like, ErrTooLong or an address that leads nowhere, for errors.Is
}

func (e *RemoteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Op, e.URL)
	if e.Ref != "" {
		fmt.Fprintf(&b, " (%s)", e.Ref)
	}
	fmt.Fprintf(&b, ": %v", e.Kind)
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// Unwrap gives the kind, and what caused the failure on this side: a cancelled
// context is both ErrUnreachable and context.Canceled.
func (e *RemoteError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// PartialError says that a push without atomicity was taken in part. It matches
// the kinds of all refused updates.
type PartialError struct {
	URL     string
	Applied []string                // refs that were updated
	Refused map[string]*RemoteError // refs that were not, and why
}

func (e *PartialError) Error() string {
	why := make([]string, 0, len(e.Refused))
	for name, err := range e.Refused {
		why = append(why, fmt.Sprintf("%s (%v: %s)", name, err.Kind, err.Detail))
	}
	sort.Strings(why)
	return fmt.Sprintf("push %s: taken in part: updated %s; refused %s",
		e.URL, strings.Join(e.Applied, ", "), strings.Join(why, ", "))
}

// Unwrap gives the refusals.
func (e *PartialError) Unwrap() []error {
	out := make([]error, 0, len(e.Refused))
	for _, err := range e.Refused {
		out = append(out, err)
	}
	return out
}
