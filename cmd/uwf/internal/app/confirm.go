package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a person a question whose answer is yes or no, on the terminal. yes
// is the answer that a flag gave before. Where there is no terminal nobody can be
// asked: then the flag is needed.
func (f *Factory) Confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	if !f.IO.InTTY || !f.IO.ErrTTY {
		return Usagef("nobody is there to ask: %s Say so with --yes", question)
	}
	f.Notes().Printf("%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(f.IO.In, 1<<10)).ReadString('\n')
	if err != nil && line == "" {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &UsageError{Err: ErrDeclined}
}

// ErrDeclined is a person's no.
var ErrDeclined = errors.New("nothing was changed: the answer was no")
