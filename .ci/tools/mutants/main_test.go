package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tryModule looks at the module of testdata, with a list of exceptions.
func tryModule(t *testing.T, list, exceptions string, change func(*options)) (string, error) {
	t.Helper()
	o := options{root: "testdata/module", jobs: 2, limit: 2 * time.Second, function: regexp.MustCompile(""),
		list: filepath.Join(t.TempDir(), "files"), exceptions: filepath.Join(t.TempDir(), "exceptions")}
	for name, text := range map[string]string{o.list: list, o.exceptions: exceptions} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(&o)
	}
	var out strings.Builder
	err := run(o, &out)
	return strings.ReplaceAll(out.String(), o.exceptions, "exceptions"), err
}

const (
	both = "# a comment\nkept/*.go call:fail false:letters\nbare/*.go\n"
	// What is never reached, and what is reached by a test that does not look.
	excepted = `# a comment
kept/kept.go Read
n == 13
There is no reason,
on two lines.

kept/kept.go Small
size == ""
It can't be.

bare/bare.go Read
s == ""
Nobody looks.
`
)

func TestMutants(t *testing.T) {
	cases := map[string]struct {
		list, exceptions string
		change           func(*options)
		want             string
		bad              bool
	}{
		"unguarded": {list: both, bad: true, want: `
kept/kept.go:23: Read: n == 13: survived, reached by TestReached
kept/kept.go:60: Small: size == "": survived, no test gets there
kept: 20 places, 18 killed, 0 excepted, 2 survived
bare/bare.go:8: Read: s == "": survived, no test gets there
bare: 1 places, 0 killed, 0 excepted, 1 survived
21 places, 18 killed, 0 excepted, 3 survived
`},
		"excepted": {list: both, exceptions: excepted, change: func(o *options) { o.function = regexp.MustCompile("Small|Read") }, want: `
kept: 10 places, 8 killed, 2 excepted, 0 survived
bare: 1 places, 0 killed, 1 excepted, 0 survived
11 places, 8 killed, 3 excepted, 0 survived
`},
		"an exception that is guarded": {list: both, bad: true,
			exceptions: excepted + "\nkept/kept.go Small\nn < 10\nNot so.\n",
			change:     func(o *options) { o.only, o.function = []string{"kept"}, regexp.MustCompile("Small|Read") }, want: `
kept/kept.go:52: Small: n < 10: is an exception, but TestSmall guards it
kept: 10 places, 8 killed, 2 excepted, 0 survived
10 places, 8 killed, 2 excepted, 0 survived
`},
		"an exception without a place": {list: both, bad: true,
			exceptions: excepted + "\nbare/bare.go Read\ns == \"-\"\nGone.\n",
			change:     func(o *options) { o.only = []string{"bare/bare.go"} }, want: `
bare: 1 places, 0 killed, 1 excepted, 0 survived
exceptions: there is no such place:
	bare/bare.go
	Read
	s == "-"
1 places, 0 killed, 1 excepted, 0 survived
`},
		"an exception for a file that is not looked at": {list: "bare/*.go", bad: true, exceptions: excepted[strings.Index(excepted, "kept/kept.go Small"):], want: `
bare: 1 places, 0 killed, 1 excepted, 0 survived
exceptions: there is no such place:
	kept/kept.go
	Small
	size == ""
1 places, 0 killed, 1 excepted, 0 survived
`},
		"shown": {list: both, change: func(o *options) { o.show, o.function = true, regexp.MustCompile("Long|^Read") }, want: `
kept/kept.go:20: Read: n, err := strconv.Atoi(s); err != nil
kept/kept.go:23: Read: n < 0
kept/kept.go:23: Read: n > 100
kept/kept.go:23: Read: n == 13
kept/kept.go:88: Long: n < 0
bare/bare.go:8: Read: s == ""
6 places
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tryModule(t, c.list, c.exceptions, c.change)
			if got != c.want[1:] || errors.Is(err, errUnguarded) != c.bad || !c.bad && err != nil {
				t.Errorf("error %v\n%s", err, got)
			}
		})
	}
}

// TestGuards says which test guards a place, and that a test which does not end without
// the refusal has failed.
func TestGuards(t *testing.T) {
	got, err := tryModule(t, both, "", func(o *options) { o.verbose, o.only, o.function = true, []string{"kept"}, regexp.MustCompile("Long") })
	want := "kept/kept.go:88: Long: n < 0: guarded by TestLong\n" +
		"kept: 1 places, 1 killed, 0 excepted, 0 survived\n1 places, 1 killed, 0 excepted, 0 survived\n"
	if err != nil || got != want {
		t.Errorf("error %v\n%s", err, got)
	}
}

// TestFailsAnyway shows that nothing is concluded from a test that fails as the code is.
func TestFailsAnyway(t *testing.T) {
	t.Setenv("MUTANTS_TEST_FAILS", "yes")
	out, err := tryModule(t, both, "", nil)
	if err == nil || !strings.Contains(err.Error(), "kept: with nothing taken out, TestReached: ") || out != "" {
		t.Errorf("error %v\n%s", err, out)
	}
}

// TestFilesRefused shows that a mistake in the two lists is not passed over.
func TestFilesRefused(t *testing.T) {
	cases := map[string]struct{ list, exceptions, want string }{
		"no file":            {"bare/*.go\nother/*.go", "", ":2: no file other/*.go"},
		"unknown word":       {"bare/*.go true:x", "", `:1: "true:x" is none`},
		"no reason":          {"bare/*.go", "bare/bare.go Read\ns == \"\"", "not \"file function\""},
		"no function":        {"bare/*.go", "bare/bare.go\ns == \"\"\nWhy.", "not \"file function\""},
		"the same one twice": {"bare/*.go", strings.Repeat("bare/bare.go Read\ns == \"\"\nWhy.\n\n", 2), "is there twice"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if out, err := tryModule(t, c.list, c.exceptions, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v\n%s", err, out)
			}
		})
	}
}
