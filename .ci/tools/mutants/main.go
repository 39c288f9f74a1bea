// Command mutants takes each refusal of the files that read what comes from outside
// out of the code, one at a time, and says which of them no test of their own package
// misses. A refusal is a condition under which an error is returned: of "a || b" each
// operand is a place of its own.
//
//	go run . [-list] [-v] [-j n] [-limit time] [-func name] [-skip tests] [file, folder or folder/...]
//
// It ends with 1 where a refusal is not guarded, where an exception is out of date or
// where a file of the list is not there. A package's test program is built once: every
// place of it can be switched off by the environment.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// options is what the command line says.
type options struct {
	root       string // the module's folder
	list       string // file with the files to look at
	exceptions string // file with the places that need no test
	only       []string
	function   *regexp.Regexp
	skip       *regexp.Regexp // tests to leave out; nil: none
	show       bool
	verbose    bool
	jobs       int
	limit      time.Duration // of processor time, after which a test has failed
}

func main() {
	var o options
	var function, skip string
	flag.StringVar(&o.root, "C", "../../..", "the module's `folder`")
	flag.StringVar(&o.list, "files", "files.txt", "the `file` that lists the files to look at")
	flag.StringVar(&o.exceptions, "exceptions", "exceptions.txt", "the `file` that lists the places that need no test")
	flag.StringVar(&function, "func", "", "only functions whose name matches this `expression`")
	flag.StringVar(&skip, "skip", "", "without the tests whose name matches this `expression`: slow ones, say")
	flag.BoolVar(&o.show, "list", false, "show the places, run nothing")
	flag.BoolVar(&o.verbose, "v", false, "say of each place which test guards it")
	flag.IntVar(&o.jobs, "j", 2, "how many tests run at once")
	flag.DurationVar(&o.limit, "limit", 30*time.Second, "what a test may take of a processor, besides ten times what it takes as the code is")
	flag.Parse()
	o.only = flag.Args()
	var err error
	o.function, err = regexp.Compile(function)
	if err == nil && skip != "" {
		o.skip, err = regexp.Compile(skip)
	}
	if err == nil {
		err = run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// counts is what becomes of the places.
type counts struct{ places, killed, excepted, survived int }

func (c *counts) add(other counts) {
	c.places += other.places
	c.killed += other.killed
	c.excepted += other.excepted
	c.survived += other.survived
}

func (c counts) String() string {
	return fmt.Sprintf("%d places, %d killed, %d excepted, %d survived", c.places, c.killed, c.excepted, c.survived)
}

var errUnguarded = errors.New("not every refusal is guarded")

// run looks at each package in turn. The error says only that something is wrong:
// what it is has been written.
func run(o options, out io.Writer) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	o.root = root
	exceptions, err := readExceptions(o.exceptions)
	if err != nil {
		return err
	}
	files, err := readList(o.list, o.root)
	if err != nil {
		return err
	}
	var sum counts
	wrong := false
	known := map[string]bool{} // the exceptions that match a place
	looked := map[string]bool{}
	for _, pkg := range packages(files, o.only) {
		if err := pkg.findPlaces(o.root); err != nil {
			return err
		}
		for _, f := range pkg.files {
			looked[f.name] = true
		}
		for _, p := range pkg.places {
			known[p.key()] = true
		}
		pkg.keep(o.function)
		if o.show {
			for _, p := range pkg.places {
				fmt.Fprintln(out, p)
			}
			sum.places += len(pkg.places)
			continue
		}
		if len(pkg.places) == 0 {
			continue
		}
		if err := pkg.try(o); err != nil {
			return fmt.Errorf("%s: %w", pkg.folder, err)
		}
		c, stale := pkg.judge(exceptions, o.verbose, out)
		fmt.Fprintf(out, "%s: %s\n", pkg.folder, c)
		wrong = wrong || stale || c.survived > 0
		sum.add(c)
	}
	for key := range exceptions {
		file, _, _ := strings.Cut(key, "\n")
		if looked[file] && !known[key] || len(o.only) == 0 && !looked[file] {
			fmt.Fprintf(out, "%s: there is no such place:\n%s\n", o.exceptions, indent(key))
			wrong = true
		}
	}
	if o.show {
		fmt.Fprintf(out, "%d places\n", sum.places)
	} else {
		fmt.Fprintln(out, sum)
	}
	if wrong {
		return errUnguarded
	}
	return nil
}

// judge says what became of the places of a package, and whether an exception is not
// needed.
func (pkg *folder) judge(exceptions map[string]string, verbose bool, out io.Writer) (c counts, stale bool) {
	for _, p := range pkg.places {
		c.places++
		_, excepted := exceptions[p.key()]
		switch {
		case p.killer != "" && excepted:
			fmt.Fprintf(out, "%s: is an exception, but %s guards it\n", p, p.killer)
			c.killed++
			stale = true
		case p.killer != "":
			c.killed++
			if verbose {
				fmt.Fprintf(out, "%s: guarded by %s\n", p, p.killer)
			}
		case excepted:
			c.excepted++
		default:
			c.survived++
			reached := "no test gets there"
			if len(p.tests) > 0 {
				reached = "reached by " + some(p.tests)
			}
			fmt.Fprintf(out, "%s: survived, %s\n", p, reached)
		}
	}
	return c, stale
}

// some are the first of many names.
func some(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// listed is a file of the list, and what is a refusal in it besides "return err".
type listed struct {
	name   string          // slash-separated, from the module's folder
	calls  map[string]bool // functions that note a mistake
	checks map[string]bool // functions that note one where their first argument is false
	falses map[string]bool // functions in which false is a refusal
	tests  string          // the folder of the package whose tests guard it
}

// readList reads the list of files: a pattern a line, and after it "call:name",
// "check:name", "false:name", or "tests:folder" of the tests that guard it, where those are not its package's. A pattern that matches nothing is an error.
func readList(list, root string) ([]listed, error) {
	data, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var files []listed
	index := map[string]int{}
	for n, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(words[0])))
		if err != nil || len(matches) == 0 {
			return nil, fmt.Errorf("%s:%d: no file %s", list, n+1, words[0])
		}
		for _, m := range matches {
			rel, err := filepath.Rel(root, m)
			if err != nil {
				return nil, err
			}
			name := filepath.ToSlash(rel)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if _, ok := index[name]; !ok {
				index[name] = len(files)
				files = append(files, listed{name: name, tests: path.Dir(name), calls: map[string]bool{}, checks: map[string]bool{}, falses: map[string]bool{}})
			}
			for _, word := range words[1:] {
				switch kind, fn, _ := strings.Cut(word, ":"); kind {
				case "call":
					files[index[name]].calls[fn] = true
				case "check":
					files[index[name]].checks[fn] = true
				case "false":
					files[index[name]].falses[fn] = true
				case "tests":
					files[index[name]].tests = fn
				default:
					return nil, fmt.Errorf("%s:%d: %q is none of call:name, check:name, false:name, tests:folder", list, n+1, word)
				}
			}
		}
	}
	return files, nil
}

// packages puts the files that are asked for into their packages, in order: one for each folder
// of tests.
func packages(files []listed, only []string) []*folder {
	var all []*folder
	for _, f := range files {
		wanted := len(only) == 0
		for _, o := range only {
			o = path.Clean(filepath.ToSlash(o))
			below, ok := strings.CutSuffix(o, "...")
			wanted = wanted || f.name == o || path.Dir(f.name) == o || ok && strings.HasPrefix(f.name, below)
		}
		if !wanted {
			continue
		}
		dir := path.Dir(f.name)
		var in *folder
		for _, pkg := range all {
			if pkg.folder == dir && pkg.tests == f.tests {
				in = pkg
			}
		}
		if in == nil {
			in = &folder{folder: dir, tests: f.tests}
			all = append(all, in)
		}
		in.files = append(in.files, f)
	}
	return all
}

// readExceptions reads the places that need no test. Paragraphs of three parts: file
// and function, the condition as it is shown, the reason. Lines that begin with "#"
// are comments.
func readExceptions(name string) (map[string]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var kept []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	exceptions := map[string]string{}
	for paragraph := range strings.SplitSeq(strings.Join(kept, "\n"), "\n\n") {
		parts := strings.SplitN(strings.Trim(paragraph, "\n"), "\n", 3)
		if parts[0] == "" {
			continue
		}
		file, function, ok := strings.Cut(parts[0], " ")
		if len(parts) != 3 || !ok {
			return nil, fmt.Errorf("%s: not \"file function\", a condition and a reason:\n%s", name, indent(paragraph))
		}
		key := file + "\n" + function + "\n" + parts[1]
		if exceptions[key] != "" {
			return nil, fmt.Errorf("%s: is there twice:\n%s", name, indent(paragraph))
		}
		exceptions[key] = parts[2]
	}
	return exceptions, nil
}

func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }
