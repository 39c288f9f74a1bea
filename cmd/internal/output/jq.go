package output

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/united-workforce/uwf/internal/text"
)

// queryTime bounds how long one expression may work: it is meant to pick
// something out of a result, and a person who wrote a circle waits for it.
const queryTime = 10 * time.Second

// maxQuery is the longest expression, in bytes.
const maxQuery = 64 << 10

// Query is an expression of jq over a result.
type Query struct {
	text string
	code *gojq.Code
}

// ParseQuery reads an expression. It can reach neither the environment nor files
// nor other input.
func ParseQuery(text string) (*Query, error) {
	if len(text) > maxQuery {
		return nil, fmt.Errorf("--jq: the expression is longer than %d bytes", maxQuery)
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--jq: %s", explainError(text, err))
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, fmt.Errorf("--jq: the expression %q: %w", text, err)
	}
	return &Query{text: text, code: code}, nil
}

// explainError names the expression and the place that an error is at.
func explainError(text string, err error) string {
	var at *gojq.ParseError
	if !errors.As(err, &at) {
		return fmt.Sprintf("the expression %q: %v", text, err)
	}
	// Offset is behind what was read last.
	place := max(at.Offset-len(at.Token), 0)
	what := "it ends too early"
	if at.Token != "" {
		what = fmt.Sprintf("%q is not expected", at.Token)
	}
	column := utf8.RuneCountInString(text[:min(place, len(text))]) + 1
	out := fmt.Sprintf("the expression %q, at character %d: %s", text, column, what)
	if !strings.ContainsAny(text, "\n\t") {
		out += fmt.Sprintf("\n  %s\n  %s^", text, strings.Repeat(" ", column-1))
	}
	return out
}

// runQuery applies the query to a result and gives what comes out of it to emit. The
// result is taken as its JSON.
func (q *Query) runQuery(result []byte, emit func(any) error) error {
	var v any
	if err := text.DecodeJSON(result, &v); err != nil {
		return fmt.Errorf("--jq: read the result: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	for it := q.code.RunWithContext(ctx, v); ; {
		one, ok := it.Next()
		if !ok {
			return nil
		}
		err, failed := one.(error)
		var halt *gojq.HaltError
		switch {
		case !failed:
			if err := emit(one); err != nil {
				return err
			}
			continue
		case errors.As(err, &halt) && halt.Value() == nil:
			return nil // halt, without an error
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("it did not come to an end within %s", queryTime)
		}
		return &QueryError{fmt.Errorf("--jq: the expression %q: %w", q.text, err)}
	}
}

// QueryError is an expression that does not fit the result.
type QueryError struct{ error }

// ExitCode is that of wrong usage: the command did what it was asked for.
func (*QueryError) ExitCode() int { return 2 }

// printQuery prints what the query makes of a result: one value a line, texts as
// they are but for what a terminal would act on, all else as JSON.
func (p Printer) printQuery(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	w := p.Text()
	err = p.Query.runQuery(b, func(one any) error {
		if s, ok := one.(string); ok {
			w.Println(s)
		} else if line, err := gojq.Marshal(one); err != nil {
			return fmt.Errorf("print the result: %w", err)
		} else {
			w.writeRaw(escapeUnsafe(string(line)) + "\n")
		}
		return w.Flush()
	})
	return errors.Join(err, w.Flush())
}
