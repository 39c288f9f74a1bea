package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/recolabs/gnata"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

// MaxExpression is the longest expression, in bytes.
const MaxExpression = 8 << 10

// Errors of Holds. What the expression itself fails with wraps ErrFailed.
var (
	// ErrFailed: the expression can't be evaluated over this thread.
	ErrFailed = errors.New("the expression fails")
	// ErrTimeout: the expression takes too long.
	ErrTimeout = errors.New("the expression takes too long")
	// ErrTooLarge: the thread, or what the expression makes of it, is too large.
	ErrTooLarge = errors.New("too large for a condition")
)

// Condition is a compiled expression. It is safe for concurrent use.
type Condition struct {
	compiled *gnata.Expression
	// Roles are the names that the expression asks $first and $last for, or compares
	// the role of steps with.
	Roles []Name
	// Agents are the names that it compares the agent of steps with.
	Agents []Name
	// Suspects are the names in the expression that stand for nothing, so that it
	// can't be what was meant, and what is evaluated otherwise than by jsonata.
	Suspects []SyntaxError
}

// Name is a role's name in an expression. Offset and Length are in bytes and span
// its quotes.
type Name struct {
	Role           string
	Offset, Length int
}

// SyntaxError says why a text is no condition.
type SyntaxError = source.SyntaxError

// refusedFunctions are the functions that a condition can't use, and why.
func refusedFunctions() map[string]string {
	const again = "can answer differently each time, and a condition must not"
	return map[string]string{
		"now": again, "millis": again, "random": again, "shuffle": again,
		"eval": "runs text that nobody has checked",
	}
}

// Compile reads an expression. The error is a *SyntaxError.
func Compile(expression string) (*Condition, error) {
	switch {
	case strings.TrimSpace(expression) == "":
		return nil, &SyntaxError{Length: 1, Message: "the expression is empty", Fix: "write a JSONata expression, such as steps[-1].output.approved = false"}
	case len(expression) > MaxExpression:
		return nil, &SyntaxError{Length: 1, Message: fmt.Sprintf("the expression has %d bytes; the limit is %d", len(expression), MaxExpression), Fix: "shorten it"}
	case !utf8.ValidString(expression):
		return nil, &SyntaxError{Length: 1, Message: "the expression is not UTF-8", Fix: "save the file as UTF-8"}
	}
	tokens := scanTokens(expression)
	for _, t := range tokens {
		why, bad := refusedFunctions()[t.name]
		if bad && t.kind == variable {
			return nil, &SyntaxError{Offset: t.at, Length: t.length, Message: fmt.Sprintf("$%s %s", t.name, why), Fix: "compare fields of start and steps"}
		}
		if t.kind == pattern {
			if why := tooLarge(t.text); why != "" {
				return nil, &SyntaxError{Offset: t.at, Length: t.length, Message: why, Fix: "write a shorter one, with fewer groups and repetitions"}
			}
		}
	}
	compiled, err := compileExpression(expression)
	if err != nil {
		return nil, explainError(expression, tokens, err)
	}
	if again, err := compileExpression(rewriteSource(expression)); err == nil {
		compiled = again
	}
	return &Condition{compiled: compiled, Roles: roleNames(tokens, "role"), Agents: roleNames(tokens, "agent"), Suspects: append(suspectNames(tokens), differences(tokens)...)}, nil
}

// compileExpression calls the library, which reports some of its own mistakes by panicking.
func compileExpression(expression string) (out *gnata.Expression, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the expression can't be read: %v", p)
		}
	}()
	return gnata.Compile(expression)
}

// Holds reports whether the expression's value counts as true: everything but
// null, "", 0, NaN, false and no value at all. An empty list counts as true.
func (c *Condition) Holds(t *Thread) (bool, error) {
	b := newBudget(t.measure)
	v, err := c.evalWatched(b, t)
	if errors.Is(err, errStuck) {
		return false, err
	}
	if err := t.spendBudget(b); err != nil {
		return false, err
	}
	switch {
	case b.err != nil:
		return false, b.err
	case err != nil:
		return false, fmt.Errorf("%w: %s", ErrFailed, errorReason(err))
	}
	return isTruthy(v), nil
}

// errStuck: an evaluation didn't stop when it should have.
var errStuck = fmt.Errorf("%w: more than %v", ErrTimeout, maxStuck)

// evalWatched is eval with an end that the library has no say in: it can be busy for
// ever within one function, or in comparing two values. What is left behind then
// goes on until the process ends, which has nothing more to decide.
func (c *Condition) evalWatched(b *budget, t *Thread) (any, error) {
	type result struct {
		value any
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := c.evalExpression(b, t)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-b.after(maxStuck):
		return nil, errStuck
	}
}

func (c *Condition) evalExpression(b *budget, t *Thread) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("%v", p)
		}
	}()
	env := gnata.NewCustomEnv(t.customFunctions(b))
	guardFunctions(b, env)
	return c.compiled.EvalWithCustomFuncs(b, t.data, env)
}

// isTruthy is how the oldest dialect reads an expression's value.
func isTruthy(v any) bool {
	if v == nil || gnata.IsNull(v) {
		return false
	}
	switch v := v.(type) {
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0 && !math.IsNaN(v)
	case int:
		return v != 0
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0 // out of range is not zero
	}
	return true
}

// errorReason is the library's error without its wrapping.
func errorReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "JSONata error ")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}
