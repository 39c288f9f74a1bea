package liquid

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/render"
	"github.com/osteele/liquid/values"
)

// newConfig is the language: our tags, which charge what they do to the budget, and
// the filters. The library's own tags would read files and loop without end.
func newConfig(b *budget) render.Config {
	cfg := render.NewConfig()
	// Names are checked against the schema when a definition is read. A field that the
	// schema leaves open may be missing when it is filled in: the step is done and paid
	// for by then, and mustache and the predecessor write nothing.
	cfg.StrictVariables = false
	addFilters(&cfg, b)
	cfg.AddTag("assign", compileAssign)
	cfg.AddTag("break", compileLeave(errBreak))
	cfg.AddTag("continue", compileLeave(errContinue))
	cfg.AddTag("cycle", compileCycle)
	cfg.AddBlock("capture").Compiler(compileCapture(b))
	cfg.AddBlock("case").Clause("when").Clause("else").Compiler(compileCase)
	cfg.AddBlock("comment")
	cfg.AddBlock("for").Clause("else").Compiler(compileLoop(b))
	cfg.AddBlock("if").Clause("else").Clause("elsif").Compiler(compileConditional(true))
	cfg.AddBlock("raw")
	cfg.AddBlock("unless").Clause("else").Clause("elsif").Compiler(compileConditional(false))
	return cfg
}

type renderer = func(io.Writer, render.Context) error

func compileAssign(source string) (renderer, error) {
	stmt, err := expressions.ParseStatement(expressions.AssignStatementSelector, source)
	if err != nil {
		return nil, err
	}
	return func(_ io.Writer, ctx render.Context) error {
		v, err := ctx.Evaluate(stmt.Assignment.ValueFn)
		if err == nil {
			ctx.Set(stmt.Assignment.Variable, v)
		}
		return err
	}, nil
}

func compileLeave(how error) render.TagCompiler {
	return func(string) (renderer, error) {
		return func(_ io.Writer, ctx render.Context) error { return ctx.WrapError(how) }, nil
	}
}

// cycleKey and loopKey are names that no template can write.
const (
	cycleKey = " cycles"
	loopKey  = "forloop"
)

func compileCycle(source string) (renderer, error) {
	stmt, err := expressions.ParseStatement(expressions.CycleStatementSelector, source)
	if err != nil {
		return nil, err
	}
	group, texts := cmp.Or(stmt.Cycle.Group, source), stmt.Cycle.Values
	return func(w io.Writer, ctx render.Context) error {
		counts, ok := ctx.Get(cycleKey).(map[string]int)
		if !ok {
			return ctx.Errorf("cycle must be within a loop")
		}
		n := counts[group]
		counts[group] = n + 1
		_, err := io.WriteString(w, texts[n%len(texts)])
		return err
	}, nil
}

func compileCapture(b *budget) render.BlockCompiler {
	return func(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
		return func(_ io.Writer, ctx render.Context) error {
			var buf bytes.Buffer
			if err := ctx.RenderChildren(&charged{&buf, b}); err != nil {
				return err
			}
			ctx.Set(node.Args, buf.String())
			return nil
		}, nil
	}
}

// charged is a buffer that the budget pays for.
type charged struct {
	buf    *bytes.Buffer
	budget *budget
}

func (c *charged) Write(p []byte) (int, error) {
	c.budget.spendOrPanic(len(p))
	return c.buf.Write(p)
}

// branch is one way through a block. A nil test always holds.
type branch struct {
	test func(render.Context) (bool, error)
	body *render.BlockNode
}

func compileConditional(polarity bool) render.BlockCompiler {
	return func(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
		first, err := compileTest(node.Args, polarity)
		if err != nil {
			return nil, err
		}
		branches := []branch{{first, &node}}
		for _, c := range node.Clauses {
			next := branch{body: c}
			if c.Name == "elsif" {
				if next.test, err = compileTest(c.Args, true); err != nil {
					return nil, err
				}
			}
			branches = append(branches, next)
		}
		return takeBranch(branches), nil
	}
}

func compileTest(source string, polarity bool) (func(render.Context) (bool, error), error) {
	expr, err := expressions.Parse(source)
	if err != nil {
		return nil, err
	}
	return func(ctx render.Context) (bool, error) {
		v, err := ctx.Evaluate(expr)
		return (v != nil && v != false) == polarity, err
	}, nil
}

func compileCase(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
	subject, err := expressions.Parse(node.Args)
	if err != nil {
		return nil, err
	}
	var branches []branch
	for _, c := range node.Clauses {
		next := branch{body: c}
		if c.Name == "when" {
			stmt, err := expressions.ParseStatement(expressions.WhenStatementSelector, c.Args)
			if err != nil {
				return nil, err
			}
			next.test = equalsAny(subject, stmt.Exprs)
		}
		branches = append(branches, next)
	}
	return takeBranch(branches), nil
}

func equalsAny(subject expressions.Expression, to []expressions.Expression) func(render.Context) (bool, error) {
	return func(ctx render.Context) (bool, error) {
		v, err := ctx.Evaluate(subject)
		for _, e := range to {
			if err != nil {
				break
			}
			var w any
			if w, err = ctx.Evaluate(e); err == nil && values.Equal(v, w) {
				return true, nil
			}
		}
		return false, err
	}
}

func takeBranch(branches []branch) renderer {
	return func(w io.Writer, ctx render.Context) error {
		for _, b := range branches {
			ok := b.test == nil
			if !ok {
				var err error
				if ok, err = b.test(ctx); err != nil {
					return err
				}
			}
			if ok {
				return ctx.RenderBlock(w, b.body)
			}
		}
		return nil
	}
}

func compileLoop(b *budget) render.BlockCompiler {
	return func(node render.BlockNode) (func(io.Writer, render.Context) error, error) {
		stmt, err := expressions.ParseStatement(expressions.LoopStatementSelector, node.Args)
		if err != nil {
			return nil, err
		}
		return func(w io.Writer, ctx render.Context) error {
			v, err := ctx.Evaluate(stmt.Loop.Expr)
			if err != nil {
				return err
			}
			all := sequenceOf(v)
			s, err := sliceOf(all, stmt.Loop, ctx)
			if err != nil {
				return err
			}
			if all.n == 0 && len(node.Clauses) > 0 {
				return ctx.RenderBlock(w, node.Clauses[0])
			}
			return renderLoop(w, ctx, b, stmt.Loop.Variable, s)
		}, nil
	}
}

// renderLoop renders a loop's body for each item.
func renderLoop(w io.Writer, ctx render.Context, b *budget, name string, s sequence) error {
	outer, shadowed, cycles := ctx.Get(loopKey), ctx.Get(name), ctx.Get(cycleKey)
	defer func() {
		ctx.Set(loopKey, outer)
		ctx.Set(name, shadowed)
		ctx.Set(cycleKey, cycles)
	}()
	ctx.Set(cycleKey, map[string]int{})
	for i := range s.n {
		if err := b.useTurn(0); err != nil {
			return err
		}
		ctx.Set(name, s.at(i))
		ctx.Set(loopKey, object{
			"first": i == 0, "last": i == s.n-1, "index": i + 1, "index0": i,
			"rindex": s.n - i, "rindex0": s.n - i - 1, "length": s.n,
		})
		switch err := ctx.RenderChildren(w); {
		case err == nil:
		case errors.Is(err.Cause(), errBreak):
			return nil
		case !errors.Is(err.Cause(), errContinue):
			return err
		}
	}
	return nil
}

// sequence is what a loop goes through.
type sequence struct {
	n  int
	at func(int) any
}

// sliceOf is a sequence as it is cut by the loop's modifiers. A negative one counts
// from the end.
func sliceOf(all sequence, l expressions.Loop, ctx render.Context) (sequence, error) {
	bound := func(e expressions.Expression, size, otherwise int) (int, error) {
		if e == nil {
			return otherwise, nil
		}
		v, err := ctx.Evaluate(e)
		n := math.Trunc(countOf(cmp.Or(v, any(otherwise))))
		if n < 0 {
			n += float64(size)
		}
		return int(min(max(n, 0), float64(size))), err
	}

	from, err := bound(l.Offset, all.n, 0)
	n, bad := bound(l.Limit, all.n-from, all.n-from)
	at := func(i int) any { return all.at(from + i) }
	if l.Reversed {
		at = func(i int) any { return all.at(from + n - 1 - i) }
	}
	return sequence{n, at}, errors.Join(err, bad)
}

func sequenceOf(v any) sequence {
	switch v := v.(type) {
	case nil:
		return sequence{}
	case string:
		return sequence{min(len(v), 1), func(int) any { return v }}
	case values.Range:
		return sequence{max(v.Len(), 0), v.Index}
	case object:
		keys := slices.Sorted(maps.Keys(v))
		return sequence{len(keys), func(i int) any { return []any{keys[i], v[keys[i]]} }}
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice {
		return sequence{rv.Len(), func(i int) any { return rv.Index(i).Interface() }}
	}
	return sequence{}
}
