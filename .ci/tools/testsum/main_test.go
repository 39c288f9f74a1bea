package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	const run = `{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"quiet words\n"}
{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"a","Test":"TestNot","Output":"    a_test.go:7: there is no git\n"}
{"Action":"skip","Package":"a","Test":"TestNot"}
{"Action":"pass","Package":"a","Elapsed":1.25}
{"Action":"output","Package":"b","Test":"TestBad","Output":"    b_test.go:7: two is not one\n"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"output","Package":"b","Output":"FAIL\n"}
{"Action":"fail","Package":"b","Elapsed":2}
{"ImportPath":"c","Action":"build-output","Output":"c.go:1: what is this?\n"}
{"ImportPath":"c","Action":"build-fail"}
go: words of go itself
`
	var out strings.Builder
	s := &summary{out: &out, output: map[string]*strings.Builder{}, skipped: map[string][]string{}}
	if err := s.read(strings.NewReader(run)); err != nil {
		t.Fatal(err)
	}
	s.printEnd()
	for _, want := range []string{
		"ok       1.2 s  a\n", "skip  TestNot: there is no git\n", "b TestBad\n    b_test.go:7: two is not one\n",
		"c.go:1: what is this?\n", "go: words of go itself\n", "1 passed, 3 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet words") {
		t.Errorf("it repeats what a test that passed said:\n%s", out.String())
	}
}
