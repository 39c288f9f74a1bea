package condition_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/engine/workflow/condition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newThread is a thread whose clock stands still: what conditions decide must not
// depend on how busy the machine is.
func newThread(t testing.TB, start map[string]any, steps []condition.Step) *condition.Thread {
	t.Helper()
	out, err := condition.NewThread(start, steps)
	if err != nil {
		t.Fatal(err)
	}
	return out.SetClock(func() time.Time { return time.Time{} }, func(time.Duration) <-chan time.Time { return nil })
}

func someThread(t testing.TB) *condition.Thread {
	t.Helper()
	return newThread(t, map[string]any{"prompt": "Fix it.", "workflow": "4KNM2PXR3B1QW"}, []condition.Step{
		{Role: "planner", Output: map[string]any{"plan": "x", "n": int64(0), "list": []any{}, "f": 1.5, "null": nil}, Body: "# Plan",
			Node: map[string]any{"role": "planner", "output": "4KNM2PXR3B1QW", "agent": "uwf-mock", "prev": nil}},
		{Role: "reviewer", Output: map[string]any{"approved": true, "status": "rejected"}},
		{Role: "reviewer", Output: map[string]any{"approved": false, "status": "approved", "tags": []any{"a", "b"}}},
	})
}

func TestHolds(t *testing.T) {
	thread := someThread(t)
	for expression, want := range map[string]bool{
		"steps[-1].output.approved = false":                                                                         true,
		"steps[-1].output.status = 'approved'":                                                                      true,
		"$exists(steps[-1].output.needsClarification)":                                                              false,
		"$last('reviewer').approved":                                                                                false,
		"$first('reviewer').approved":                                                                               true,
		"$last('reviewer').approved = false and $count(steps) >= 3":                                                 true,
		"$count(steps[role = 'reviewer']) > 1":                                                                      true,
		"'b' in steps[-1].output.tags":                                                                              true,
		"start.prompt = 'Fix it.'":                                                                                  true,
		"steps[0].agent = 'uwf-mock' and steps[0].content = '# Plan'":                                               true,
		"steps[0].output.plan = 'x' /* the output, not its hash: $now */":                                           true,
		"'$now' = '$now' and /$now/ ~> $exists":                                                                     true,
		"$count(steps[role = 'nobody']) = 0 and $not($exists(steps[role = 'nobody']))":                              true,
		"steps[role = 'reviewer'][-1].output.status = 'approved'":                                                   true,
		"steps[role = 'reviewer'][0].output.status = 'rejected'":                                                    true,
		"steps[$count(steps) - 1].role = 'reviewer' and steps[-2].output.approved":                                  true,
		"'planner' in steps.role and $count($distinct(steps.role)) = 2":                                             true,
		"$exists(steps[role = 'reviewer' and output.status = 'rejected'])":                                          true,
		"$count($filter(steps, function($s) {$s.role = 'reviewer'})) = 2":                                           true,
		"$contains($lowercase(start.prompt), /fix/) and $match(start.prompt, /F(i)x/).groups[0] = 'i'":              true,
		"$sum(steps.output.f) = 1.5 and $max([1, 3, 2]) = 3 and $reduce([1, 2, 3], function($a, $b) {$a + $b}) = 6": true,
		"(steps[-1].output.status = 'approved' ? 1 : 0) and ($x := steps[0]; $x.output.plan) = 'x'":                 true,
		"steps[-1].output.missing = false":                                                                          false,
		"$join(steps.role, ',') = 'planner,reviewer,reviewer' and $string(steps[0].output.n) = '0'":                 true,
		// What counts as true.
		"null": false, "steps[0].output.null": false, "\"\"": false, "0": false, "steps[0].output.n": false, "false": false,
		"nothing": false, "$last('nobody')": false, "$last(nothing)": false, "-0": false, "0/0 = 0": false, "0/0": false,
		"[]": true, "steps[0].output.list": true, "{}": true, "'0'": true, "-1": true, "steps[0].output.f": true, "true": true,
		"'false'": true, "function($x){$x}": true, "$boolean([])": false, "$distinct([1,1]) = 1": true, "$count($distinct([1,2,1,{'a':1},{'a':1}])) = 3": true,
	} {
		c, err := condition.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := c.Holds(thread); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", expression, got, err, want)
		}
	}
}

// A condition that can't be decided is an error, never false.
func TestHoldsFails(t *testing.T) {
	for expression, want := range map[string]error{
		"steps.output.status + 1": condition.ErrFailed,
		"$error('no')":            condition.ErrFailed,
		"$last(7)":                condition.ErrFailed,
		"$last('a', 'b')":         condition.ErrFailed,
		"$nosuch(1)":              condition.ErrFailed,
		"($f := function($n){$n = 0 ? 0 : 1 + $f($n)}; $f(1))": condition.ErrFailed, // too deep
		"($f := function($n){$n = 0 ? 0 : $f($n)}; $f(1))":     condition.ErrTimeout,
		"$map([1..300000], function($x){$x * 2})":              condition.ErrTimeout,
		"$distinct([1], 2)":   condition.ErrFailed,
		"$distinct([0/0, 1])": condition.ErrFailed,
		"$lookup($merge([{}, {'x': function(){1}}]), 'x')()": nil,
	} {
		c, err := condition.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if _, err = c.Holds(someThread(t)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", expression, err, want)
		}
	}
	c, err := condition.Compile("($f := function($s,$n){$n = 0 ? $s : $f([$s, $s], $n - 1)}; $count($f([1], 60)))")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Holds(someThread(t).SetMemory(16 << 20)); !errors.Is(err, condition.ErrTooLarge) || !strings.Contains(err.Error(), "needs more than 16 MB") {
		t.Errorf("a list that doubles 60 times: %v", err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for expression, want := range map[string]string{ // offset+length
		"":                                "0+1 empty",
		" \n":                             "0+1 empty",
		"$now() > 1":                      "0+4 differently",
		"a = $millis()":                   "4+7 differently",
		"$random()":                       "0+7 differently",
		"$map(a, $shuffle)":               "8+8 differently",
		"a.b/$now":                        "4+4 differently",
		"$eval('1')":                      "0+5 checked",
		"steps[-1].output.":               "16+1 ends too early",
		"steps[":                          "5+1 ends too early",
		"(a":                              "1+1 ends too early",
		"a and":                           "4+1 ends too early",
		"a b":                             "2+1 can't stand here",
		"a = = b":                         "4+1 can't stand here",
		"steps[-1] .output == 1":          "19+1 can't stand here",
		"a)":                              "1+1 can't stand here",
		"x = 'abc":                        "4+1 never closed",
		"x.`abc":                          "2+1 never closed",
		"x /* abc":                        "2+1 never closed",
		"x ~> /abc":                       "5+1 never closed",
		"'a\\x'":                          "0+5 escape",
		"a := 1":                          "2+2 :=",
		"(a; b c)":                        "6+1 can't stand here",
		"\xff":                            "0+1 UTF-8",
		strings.Repeat("a.", 200) + "a b": "-1+1 can't stand here", // where is not looked for
		strings.Repeat(" ", 2048) + "a b": "-1+1 can't stand here",
		strings.Repeat("a.", 5000) + "a":  "0+1 limit",
	} {
		_, err := condition.Compile(expression)
		var bad *condition.SyntaxError
		if !errors.As(err, &bad) {
			t.Errorf("%.40q: %v", expression, err)
			continue
		}
		where, words, _ := strings.Cut(want, " ")
		if got := fmt.Sprintf("%d+%d", bad.Offset, bad.Length); got != where || !strings.Contains(bad.Error(), words) || bad.Fix == "" {
			t.Errorf("%.40q: %s %v, want %s", expression, got, bad, want)
		}
	}
}

// Who writes another language is told what JSONata has in its place.
func TestHabits(t *testing.T) {
	for expression, want := range map[string]string{
		"a == 1": "one =", "a === 1": "one =", "a !== 1": "write !=", "a && b": "`and`", "a || b": "`or`",
		"!a": "$not", "a and !b": "$not", "not a": "$not", ".steps[-1]": "begin with",
	} {
		_, err := condition.Compile(expression)
		var bad *condition.SyntaxError
		if !errors.As(err, &bad) || !strings.Contains(bad.Fix, want) {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
}

func TestRoles(t *testing.T) {
	c, err := condition.Compile(`$last('a').x or $first( "b" ) or $last(start.prompt) or "$last('c')" or $last('d' & 'e')` +
		` or steps[role = 'f'] or steps.role != 'g' or steps[-1][0].role = 'h' or steps[-1].output.role = 'i' or steps[output.role = 'j']`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Roles); got != "[{a 6 3} {b 24 3} {f 105 3} {g 127 3} {h 154 3}]" {
		t.Errorf("roles %s", got)
	}
}

// A name that stands for nothing compiles, and would never hold.
func TestSuspects(t *testing.T) {
	for expression, want := range map[string]string{
		"approved = false":                     "0 approved",
		"output.approved":                      "0 output",
		"step[-1].output.approved":             "0 step",
		"steps[-1].output.approved = approved": "28 approved",
		"$cuont(steps) > 3":                    "0 $cuont",
		"count(steps)":                         "0 function count",
		"$output.approved":                     "0 $output",
		"$x > 1 and start":                     "0 $x",
		"[steps[0].role, other]":               "16 other",
		"{'a': b}":                             "6 b",
		"(a; $b)":                              "1 a 4 $b",
		"`a b`.c":                              "0 a b",
		"a and b or c in d":                    "0 a 6 b 11 c 16 d",
		// None of these is wrong.
		"steps[role = 'x' and output.n > 1].output.m":         "",
		"steps.(role & agent)":                                "",
		"steps^(>startedAtMs, role)[0].role":                  "",
		"steps.{'r': role, 'o': output.x}":                    "",
		"steps{role: $count(output)}":                         "",
		"$map(steps, function($s, $i) {$s.role & $i})":        "",
		"($f := λ($a) {$a}; $f(start.prompt))":                "",
		"steps[-1].output[status = 'x' or other[y]]":          "",
		"start.prompt in ['a', steps[0].output.b]":            "",
		"steps.$contains(role, 'x')":                          "",
		"steps ~> |$|{'a': b}|":                               "",
		"steps@$s.output[x = $s.role]":                        "",
		"$$.steps and $.start and true and null":              "",
		"steps.output.in or steps.and":                        "",
		"{start: 1}":                                          "",
		"steps.output ~> $count() > 1 ? start.a : steps[0].b": "",
	} {
		c, err := condition.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var got []string
		for _, s := range c.Suspects {
			name := s.Message[:strings.IndexAny(s.Message+":", ":")]
			name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "there is no "), "function $"), " is not set anywhere")
			if strings.HasPrefix(s.Message, "there is no function $") {
				name = "$" + name
			}
			got = append(got, fmt.Sprintf("%d %s", s.Offset, name))
			if s.Fix == "" || s.Length < 1 {
				t.Errorf("%s: %+v", expression, s)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", expression, strings.Join(got, " "), want)
		}
	}
}

func TestThreadIsBounded(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	steps := make([]condition.Step, 70)
	for i := range steps {
		steps[i] = condition.Step{Role: "a", Output: map[string]any{"x": big}}
	}
	if _, err := condition.NewThread(nil, steps); !errors.Is(err, condition.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := condition.NewThread(map[string]any{"x": math.NaN()}, nil); err == nil || !strings.Contains(err.Error(), "unsupported value: NaN") {
		t.Errorf("what is no JSON: %v", err)
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"steps[-1].output.approved = false", "$last('a').x", "$exists(a.b[0])", "/a/i", "'x' & \"y\"", "`a b`.c", "(a := 1; λ($x){$x})", "a ? b : c",
		"{'a': 1}", "$map(steps, function($s, $i) {$i})", "a^(>b)", "|a|{}|", "a.%.b", "a@$x.b#$i", "[1..3]", "steps[", "\xff", "/* x */ 1", "$now", "1e999", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		thread := someThread(t).SetClock(time.Now, time.After)
		c, err := condition.Compile(expression)
		var bad *condition.SyntaxError
		if err != nil {
			if !errors.As(err, &bad) || bad.Fix == "" || bad.Offset < -1 || bad.Offset > len(expression) || bad.Length < 1 {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, r := range c.Roles {
			if r.Offset < 0 || r.Offset+r.Length > len(expression) {
				t.Fatalf("%+v", r)
			}
		}
		for _, s := range c.Suspects {
			if s.Offset < 0 || s.Offset+s.Length > len(expression) || s.Length < 1 || s.Fix == "" || s.Message == "" {
				t.Fatalf("%+v", s)
			}
		}
		if _, err := c.Holds(thread); err != nil && !errors.Is(err, condition.ErrFailed) && !errors.Is(err, condition.ErrTimeout) && !errors.Is(err, condition.ErrTooLarge) {
			t.Fatal(err)
		}
	})
}
