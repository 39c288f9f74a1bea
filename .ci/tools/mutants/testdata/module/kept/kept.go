// Package kept reads numbers. Its tests miss every refusal but those that are named so.
package kept

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrSmall is the refusal at the end of Small.
var ErrSmall = errors.New("small")

type reader struct{ problems []string }

func (r *reader) fail(text string) { r.problems = append(r.problems, text) }

// Read has a condition of three operands, of which the last is not guarded.
func Read(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > 100 || n == 13 {
		return 0, fmt.Errorf("%d is out of range", n)
	}
	return n, nil
}

// Word refuses in a switch, twice by a case and once by default.
func Word(s string) (int, error) {
	switch {
	case len(s) > 10:
		return 0, errors.New("long")
	case s == "" || s == "-":
		return 0, errors.New("empty")
	}
	switch s {
	case "one":
		return 1, nil
	case "none", "nothing":
		return 0, errors.New("nothing")
	default:
		return 0, errors.New("unknown")
	}
}

// Small refuses where nothing else is known, in the other branch of an if, and by
// putting an error into err.
func Small(n int) (size string, err error) {
	if n == 0 {
		return "", nil
	} else if n < 10 {
		size = "small"
	} else {
		return "", errors.New("big")
	}
	if !(n > 1 && n != 7) {
		err = errors.New("odd")
	}
	if err != nil || size == "" {
		return "", err
	}
	if n == 2 {
		return size, nil
	}
	return "", ErrSmall
}

// letters is a function in which false refuses.
func letters(s string) bool {
	for _, c := range s {
		if c == '!' {
			return false
		}
	}
	return len(s) < 5 && s != ""
}

func (r *reader) read(s string) {
	if !letters(s) {
		r.fail("no letters")
	}
}

// Long goes on for ever without its refusal.
func Long(n int) error {
	for {
		if n--; n < 0 {
			return errors.New("over")
		}
	}
}
