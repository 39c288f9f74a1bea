package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/gitcas/ocas/ocastest"
)

// take VARIABLE REGEXP sets a variable to what the expression's first group finds
// in the last command's stdout.
func takeVariable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: take VARIABLE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("%s is not in stdout", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// near VARIABLE ID sets a variable to an id with one character mistyped.
func mistypeID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || len(args[1]) < 2 {
		ts.Fatalf("usage: near VARIABLE ID")
	}
	last := byte('0')
	if strings.HasSuffix(args[1], "0") {
		last = '1'
	}
	ts.Setenv(args[0], args[1][:len(args[1])-1]+string(last))
}

// gocache lets go use the machine's cache: without it every script would compile
// the standard library.
func shareGoCache(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: gocache")
	}
	dir := os.Getenv("GOCACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		ts.Check(err)
		dir = filepath.Join(user, "go-build")
	}
	ts.Setenv("GOCACHE", dir)
}

// ocas FOLDER makes what the TypeScript uwf leaves on a disk: FOLDER/nodes,
// FOLDER/root and FOLDER/bundle.tar, with the threads that package ocastest names.
func writeOldStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ocas FOLDER")
	}
	s, err := ocastest.New()
	ts.Check(err)
	ts.Check(s.Write(ts.MkAbs(args[0])))
	ts.Setenv("OLDHEAD", string(s.Heads[ocastest.Active]))
}
