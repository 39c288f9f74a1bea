package clitest

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/shlex"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/internal/ocastest"
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

// follow CODE REGEXP [ARG]... types the command that the expression's first group finds in
// what the last command printed, on stderr or else stdout, as a person would who was told to.
// Words that stand for a value are replaced, and further arguments are added. It must end
// with that exit code.
func followAdvice(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: follow CODE REGEXP [ARG]...")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := re.FindStringSubmatch(ts.ReadFile("stderr") + "\n" + ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("nothing advises %s", args[1])
	}
	ts.Logf("it advises: %s", found[1])
	if !strings.HasPrefix(found[1], "uwf ") {
		runExpecting(ts, false, []string{args[0], "sh", "-c", found[1]})
		return
	}
	words, err := shlex.Split(found[1])
	ts.Check(err)
	for i, word := range words {
		if value := map[string]string{"…": "an answer", "N": "99", "DOLLARS": "99", "TIME": "9h"}[word]; value != "" {
			words[i] = value
		}
	}
	runExpecting(ts, false, slices.Concat(args[:1], words, args[2:]))
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
// ocas FOLDER ARCHIVE unpacks what it left itself, and puts the ids of the threads into variables
// by what they are: active, done, cancelled, started, suspended, forked, killed.
func writeOldStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: ocas FOLDER [ARCHIVE]")
	}
	if len(args) == 2 {
		dir := ts.MkAbs(args[0])
		ts.Check(errors.Join(os.MkdirAll(dir, 0o700), ocastest.Unpack("../../../uwf-import/testdata/stores/"+args[1]+".tgz", dir)))
		for line := range strings.Lines(ts.ReadFile(filepath.Join(dir, args[1], "ids"))) {
			is, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			ts.Setenv(is, id)
		}
		return
	}
	s, err := ocastest.New()
	ts.Check(err)
	ts.Check(s.Write(ts.MkAbs(args[0])))
	ts.Setenv("OLDHEAD", string(s.Heads[ocastest.Active]))
}
