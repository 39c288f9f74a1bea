package config

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/config/table"
)

// ErrNoModel says that there is no model to ask, and what to set.
var ErrNoModel = errors.New("no model is configured: run uwf setup, or set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or GEMINI_API_KEY, or say --provider ollama --model NAME for one on this machine")

// ErrInvalid is wrapped by errors about what the sources say.
var ErrInvalid = errors.New("configuration is invalid")

// InvalidError lists everything that is wrong. It wraps ErrInvalid.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string { return "read the configuration: " + table.Lines(e.Problems) }

// Unwrap gives ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// Withheld is a provider that gets no key here, because only a file of a repository that
// nobody trusts sends it there.
type Withheld struct {
	Problem
	Command string // puts the same provider into ~/.uwf/config.yaml, which lets it have the key
}

// WithheldError says that a model can't be used, because its provider gets no key here.
type WithheldError struct {
	Alias string // of the model
	Withheld
}

func (e *WithheldError) Error() string {
	return fmt.Sprintf("use model %q: its provider gets no key here: %s", e.Alias, e.Problem)
}

// Problem is one thing that is wrong, where it stands, and what to do.
type Problem = table.Problem

// Path is where a setting stands: the keys that lead to it.
type Path = table.Path

// ParsePath reads a dotted path; see package table.
func ParsePath(text string) (Path, error) { return table.ParsePath(text) }

// UnknownPathError says that there is no such setting.
type UnknownPathError = table.UnknownPathError
