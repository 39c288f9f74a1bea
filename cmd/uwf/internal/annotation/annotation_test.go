package annotation

import (
	"strings"
	"testing"
)

func TestAnnotationsAreEscaped(t *testing.T) {
	var b strings.Builder
	j := &Job{out: &b, dir: "/repo/sub", top: "/repo"}
	j.Write(Annotation{File: "a,b:c%.yaml", Line: 3, Column: 2, Length: 4, Message: "100%\r\n::set-env::x\x1b[31m", Fix: "##[error]x"})
	j.Write(Annotation{File: "../../out.yaml", Line: 1, Column: 1, Length: 1, Message: "m", Warning: true})
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
