package condition_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow/condition"
)

// Whoever can push to the state branch can store conditions that Parse never saw,
// and whoever can write an issue can write a long prompt.
func TestBombs(t *testing.T) {
	thread := newThread(t, map[string]any{"prompt": strings.Repeat("a", 1<<20), "short": strings.Repeat("a", 1<<14)}, []condition.Step{{Role: "r", Body: "short"}})
	for expression, want := range map[string]error{
		"$replace(start.prompt, 'a', start.prompt)":                     condition.ErrTooLarge, // 1 TB
		"$replace(start.prompt, /a/, start.prompt)":                     condition.ErrTooLarge,
		"$replace(start.short, 'a', start.prompt)":                      condition.ErrTooLarge,
		"$replace(start.prompt, /a+/, $join([1..1000].('$0')))":         condition.ErrTooLarge,
		"$replace(start.prompt, /a/, function($m){'b'})":                condition.ErrTooLarge, // hours
		"$match(start.prompt, /a/)":                                     condition.ErrTooLarge,
		"$match(start.prompt, 'a')":                                     condition.ErrTooLarge,
		"$join([1..10000].('x'), start.prompt)":                         condition.ErrTooLarge,
		"$join([1..1000].($$.start.prompt))":                            condition.ErrTooLarge,
		"$string([1..1000].($$.start))":                                 condition.ErrTooLarge,
		"$contains(start.prompt, /" + strings.Repeat("a?", 300) + "b/)": condition.ErrTooLarge,
		"$split(start.prompt, /(((((((((((((((((a)))))))))))))))))/)":   condition.ErrTooLarge,
		"$match(start.prompt, /(((((((((((((((((b)))))))))))))))))/)":   condition.ErrTooLarge,
		// None of these is one.
		"$contains(start.short, /a{20}$/) and $count($match(start.short, /a{100}/, 3)) = 3":            nil,
		"$length($replace(start.short, 'aa', 'b')) = 8192 and $replace('abc', /(b)/, '$1$1') = 'abbc'": nil,
		"$replace('abc', /b/i, function($m){$uppercase($m.match)}) = 'aBc'":                            nil,
		"$join(['a', 'b'], ', ') = 'a, b' and $join('a') = 'a' and $not($exists($join(nothing)))":      nil,
		"$string({'a': [1, null, true]}) = '{\"a\":[1,null,true]}' and $string(function($x){$x}) = ''": nil,
		"$split('a1b2c', /[0-9]/)[2] = 'c' and $match('abc', 'b')[0].start = 1":                        nil,
	} {
		c, err := condition.Compile(expression)
		if err != nil {
			t.Errorf("%.60s: %v", expression, err)
			continue
		}
		holds, err := c.Holds(thread)
		if !errors.Is(err, want) || want == nil && !holds {
			t.Errorf("%.60s: %v, %v; want %v", expression, holds, err, want)
		}
	}
}

func compileExpression(t *testing.T, expression string) *condition.Condition {
	t.Helper()
	c, err := condition.Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Nothing asks the budget while the library compares two values: what then doesn't
// stop is given up, and left behind. Here the budget's own clock is what holds the
// evaluation up.
func TestStuck(t *testing.T) {
	began, over, free := make(chan struct{}), make(chan time.Time), make(chan struct{})
	var asked atomic.Int64
	thread := someThread(t).SetClock(
		func() time.Time {
			if asked.Add(1) == 2 { // the first one is the budget's own
				close(began)
				<-free
			}
			return time.Time{}
		},
		func(d time.Duration) <-chan time.Time {
			go func() {
				<-began
				close(over)
			}()
			return over
		})
	c := compileExpression(t, "$count($map([1..1000], function($x){$x})) = 1000")
	if _, err := c.Holds(thread); !errors.Is(err, condition.ErrStuck) || !errors.Is(err, condition.ErrTimeout) {
		t.Errorf("%v", err)
	}
	close(free) // what is left behind comes to its end, as this package's leak test sees
}

// The clock is for what is busy without evaluating anything: each of these has far
// fewer parts than are too many.
func TestTimes(t *testing.T) {
	c := compileExpression(t, "$count($map([1..1000], function($x){$x})) = 1000")
	for name, tt := range map[string]struct {
		asked, watched time.Duration // that pass when the time is asked for, and in an evaluation
		holds          int64         // evaluations before one is too much
		says           string
	}{
		"one":  {condition.MaxTime, 0, 0, "more than 5s"},
		"many": {0, condition.MaxTime - 1, int64(condition.MaxAllTime / (condition.MaxTime - 1)), "all conditions of this step together took 25s"},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			thread := someThread(t).SetClock(
				func() time.Time { return time.Unix(0, now.Add(int64(tt.asked))) },
				func(time.Duration) <-chan time.Time { now.Add(int64(tt.watched)); return nil })
			for range tt.holds {
				if holds, err := c.Holds(thread); err != nil || !holds {
					t.Fatal(holds, err)
				}
			}
			if _, err := c.Holds(thread); !errors.Is(err, condition.ErrTimeout) || !strings.Contains(err.Error(), tt.says) {
				t.Error(err)
			}
		})
	}
}

// Many conditions on one thread have a limit together.
func TestManyConditions(t *testing.T) {
	thread := someThread(t)
	c := compileExpression(t, "$count($map([1..20000], function($x){$x})) = 0")
	for range 1000 {
		if _, err := c.Holds(thread); err != nil {
			if !errors.Is(err, condition.ErrTimeout) || !strings.Contains(err.Error(), "together evaluate more than") {
				t.Error(err)
			}
			return
		}
	}
	t.Fatal("a thousand of them are not too many")
}

func TestLargeExpressionsRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		"/((a{0,100}){0,10})*c/":                        "instructions",
		"/" + strings.Repeat("(a)", 40) + "/i":          "groups",
		"/" + strings.Repeat("[a-z]{1,20}-", 5) + "x/i": "",
	} {
		_, err := condition.Compile("start.prompt ~> " + pattern)
		var bad *condition.SyntaxError
		if (err != nil) != (want != "") || err != nil && (!errors.As(err, &bad) || !strings.Contains(bad.Message, want) || bad.Offset != 16 || bad.Length != len(pattern)) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
