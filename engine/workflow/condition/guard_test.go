package condition_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow/condition"
)

// Whoever can push to the state branch can store conditions that Parse never saw,
// and whoever can write an issue can write a long prompt.
func TestBombs(t *testing.T) {
	thread, err := condition.NewThread(map[string]any{"prompt": strings.Repeat("a", 1<<20), "short": strings.Repeat("a", 1<<14)}, []condition.Step{{Role: "r", Body: "short"}})
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]error{
		"$replace(start.prompt, 'a', start.prompt)":                     condition.ErrTooLarge, // 1 TB
		"$replace(start.prompt, /a/, start.prompt)":                     condition.ErrTooLarge,
		"$replace(start.prompt, /a+/, $join([1..1000].('$0')))":         condition.ErrTooLarge,
		"$replace(start.prompt, /a/, function($m){'b'})":                condition.ErrTooLarge, // hours
		"$match(start.prompt, /a/)":                                     condition.ErrTooLarge,
		"$match(start.prompt, 'a')":                                     condition.ErrTooLarge,
		"$join([1..10000].('x'), start.prompt)":                         condition.ErrTooLarge,
		"$join([1..1000].($$.start.prompt))":                            condition.ErrTooLarge,
		"$string([1..1000].($$.start))":                                 condition.ErrTooLarge,
		"$contains(start.prompt, /" + strings.Repeat("a?", 300) + "b/)": condition.ErrTooLarge,
		"$split(start.prompt, /(((((((((((((((((a)))))))))))))))))/)":   condition.ErrTooLarge,
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

// Nothing asks the budget while the library compares two values.
func TestStuck(t *testing.T) {
	thread := someThread(t)
	before := runtime.NumGoroutine()
	c, err := condition.Compile("($f := function($a, $n){$n = 0 ? $a : $f([$a, $a], $n - 1)}; $f([1, 2], 27) = $f([1, 2], 27))")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := c.Holds(thread); !errors.Is(err, condition.ErrTimeout) && !errors.Is(err, condition.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	for runtime.NumGoroutine() > before { // what is left behind comes to its end
		runtime.Gosched()
		if time.Since(begin) > 5*time.Minute {
			t.Fatal("it never ends")
		}
	}
	if _, err := c.Holds(thread); err == nil {
		t.Error("it holds")
	}
}

// Many conditions on one thread have a limit together.
func TestManyConditions(t *testing.T) {
	thread := someThread(t)
	c, err := condition.Compile("$count($map([1..20000], function($x){$x})) = 0")
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := c.Holds(thread); err != nil {
			if !errors.Is(err, condition.ErrTimeout) {
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
