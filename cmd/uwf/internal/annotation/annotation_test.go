package annotation

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

func TestAnnotationsAreEscaped(t *testing.T) {
	var b strings.Builder
	j := &Job{out: &b, dir: "/repo/sub", top: "/repo"}
	j.Write(Error, workflow.Problem{File: "a,b:c%.yaml", Line: 3, Col: 2, Len: 4, Message: "100%\r\n::set-env::x\x1b[31m", Fix: "##[error]x"})
	j.Write(Warning, workflow.Problem{File: "../../out.yaml", Line: 1, Col: 1, Len: 1, Message: "m"})
	want := `::error file=sub/a%2Cb%3Ac%25.yaml,line=3,col=2,endColumn=6,title=uwf workflow::100%25%0A::set-env::x\x1b[31m%0A## [error]x` + "\n" +
		"::warning file=../../out.yaml,line=1,col=1,endColumn=2,title=uwf workflow::m\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	for text, want := range map[string]string{"a\n ::b\n::c": "a\n|  ::b\n| ::c", "x ##[y]": "x ## [y]", "a ::b": "a ::b"} {
		if got := Inert(text); got != want {
			t.Errorf("inert(%q) = %q, want %q", text, got, want)
		}
	}
}

// Whatever a file holds, its text is no command in a log, and an annotation is one
// line with one command.
func FuzzNothingIsACommand(f *testing.F) {
	for _, s := range []string{"::set-output::x", "a\n \t::b", "##[add-mask]x", "x\r::y", "%0A::z", "\u2028::x", "# #[#", "####[[", ",:,%"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, file, text string) {
		shown := Inert(text)
		for line := range strings.Lines(shown) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
		var b, j strings.Builder
		(&Job{out: &b}).Write(Error, workflow.Problem{File: file, Line: 1, Col: 1, Message: text, Fix: text})
		one := strings.TrimSuffix(b.String(), "\n")
		props, _, _ := strings.Cut(strings.TrimPrefix(one, "::error "), "::")
		if strings.ContainsAny(one, "\r\n") || strings.Count(props, ",") != 4 || strings.Count(props, "=") < 5 {
			t.Errorf("%q, %q: %q", file, text, one)
		}
		if _, err := (InertJSON{Out: &j}).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{shown, one, j.String()} {
			if strings.Contains(out, "##[") {
				t.Errorf("%q: %q", text, out)
			}
		}
	})
}
