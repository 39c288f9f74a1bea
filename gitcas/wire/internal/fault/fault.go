// Package fault holds the kinds of failure of git remotes, and turns what
// servers, git and ssh say in words into one of them. It does no I/O.
package fault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/united-workforce/uwf/internal/text"
)

// The kinds of failure.
var (
	// ErrLostRace: a ref no longer had the expected value.
	ErrLostRace = errors.New("the ref was changed by someone else")
	// ErrDenied: the credentials are missing or may not do this.
	ErrDenied = errors.New("access denied")
	// ErrProtected: a branch rule or a hook of the server refused the push.
	ErrProtected = errors.New("refused by a branch rule or hook of the server")
	// ErrTooManyRefs: the server takes fewer refs a push.
	ErrTooManyRefs = fmt.Errorf("%w: too many refs in one push", ErrProtected)
	// ErrHidden: the server takes no pushes of that ref.
	ErrHidden = fmt.Errorf("%w: the server hides this ref", ErrProtected)
	// ErrUnsigned: a rule of the server takes signed commits only.
	ErrUnsigned = fmt.Errorf("%w: commits have to be signed", ErrProtected)
	// ErrTooLarge: a file, or the push, is larger than the server takes.
	ErrTooLarge = fmt.Errorf("%w: larger than the server takes", ErrProtected)
	// ErrSecretRefused: the server's push protection found a secret.
	ErrSecretRefused = errors.New("refused because the server found a secret in the push")
	// ErrUnpack: the server could not read the objects of a push. Nothing was taken.
	ErrUnpack = errors.New("the server could not read the objects of the push")
	// ErrNotFound: no such repository or object.
	ErrNotFound = errors.New("not found")
	// ErrNotGiven: no ref leads to the object, and the server gives no others.
	ErrNotGiven = fmt.Errorf("%w: the server gives only what a ref leads to", ErrNotFound)
	// ErrUnreachable: no answer, or the connection broke. A push that failed
	// with it may or may not have happened.
	ErrUnreachable = errors.New("unreachable")
	// ErrUnreadable: the answer is damaged, too large, or no git protocol.
	ErrUnreadable = errors.New("unreadable answer")
	// ErrNotAtomic: an atomic push was asked for and the server has none.
	ErrNotAtomic = errors.New("the server has no atomic push")
	// ErrReadOnly: the files of the repository can't be written where it lies, for
	// their rights or their file system's.
	ErrReadOnly = errors.New("the repository can't be written where it lies")
	// ErrNoProgram: the program that reaches the remote, git or ssh, is not there or
	// can't be run. Nothing was asked.
	ErrNoProgram = errors.New("a program is missing")
	// ErrSHA256: the repository names its objects by SHA-256. Every id here is SHA-1.
	ErrSHA256 = errors.New("this repository names its objects by SHA-256, which uwf can't read yet")
	// ErrPromised: the repository is a partial clone, and an object that was asked for is only
	// on the remote that it was cloned from.
	ErrPromised = errors.New("the repository is a partial clone and lacks objects")
	// ErrInvalid: the request itself can't be carried out by any server: a ref
	// name that git refuses, an object that does not match its id.
	ErrInvalid = errors.New("invalid request")
	// ErrInTheWay: a ref of another name keeps this one from being made, see RefInTheWay.
	ErrInTheWay = fmt.Errorf("%w: another ref is in the way", ErrInvalid)
)

// Answers that stop before they are complete, and, as a special case, those
// that never began.
var (
	ErrEarly   = fmt.Errorf("%w: the answer ends too early", ErrUnreachable)
	ErrNothing = fmt.Errorf("%w (it is empty)", ErrEarly)
)

// ErrTooLong says that a request did not come to an end although the connection was alive.
var ErrTooLong = fmt.Errorf("%w: the server takes too long", ErrUnreachable)

// ErrNoWay says that the server is not to be had under this address: there is no such
// host, or it is not who it should be. Waiting changes nothing.
var ErrNoWay = fmt.Errorf("%w: not under this address", ErrUnreachable)

// Dialing gives an error of reaching a server its kind.
func Dialing(err error) error {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	if errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &noTLS) {
		return fmt.Errorf("%w: %w", ErrNoWay, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// LaterError is what a server refuses for now, and how long it wants to be left alone; 0:
// it doesn't say.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }

func (e *LaterError) Unwrap() error { return e.Err }

// ErrRefused says that the server is there but doesn't take a request in that
// form: try another one. It is unreadable for who can't.
var ErrRefused = fmt.Errorf("%w: the server refuses this form of request", ErrUnreadable)

// ServerError is what a server said instead of an answer.
type ServerError struct{ Text string }

func (e *ServerError) Error() string { return e.Text }

// Unwrap gives the kind that the text stands for.
func (e *ServerError) Unwrap() error {
	_, kind := Translate(e.Text)
	return kind
}

// Reading gives an error of reading from a connection its kind.
func Reading(err error) error {
	var said *ServerError
	switch {
	case errors.As(err, &said):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return ErrEarly
	case errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnreadable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// KindOf gives the kind that an error wraps. A cancelled or timed-out one is
// ErrUnreachable, any other unreadable.
func KindOf(err error) error {
	for _, k := range []error{
		ErrLostRace, ErrDenied, ErrTooManyRefs, ErrHidden, ErrUnsigned, ErrTooLarge, ErrProtected, ErrSecretRefused, ErrUnpack,
		ErrNotGiven, ErrNotFound, ErrSHA256, ErrPromised, ErrUnreachable, ErrUnreadable, ErrNotAtomic, ErrInTheWay, ErrInvalid, ErrReadOnly, ErrNoProgram,
	} {
		if errors.Is(err, k) {
			return k
		}
	}
	var ne net.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) {
		return ErrUnreachable
	}
	return ErrUnreadable
}

// OneLine makes text from a server safe and short enough for a message: at most 500 bytes.
func OneLine(s string) string { return text.Cut(text.Line(s), 500) }
