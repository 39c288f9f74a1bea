package main

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// house is what is measured of a module.
type house struct {
	packages map[string]*pkg // by folder
	methods  map[string]bool // the names of the methods of interfaces
	tests    int
	surface  int
	promises int
}

// pkg is one package, without its tests.
type pkg struct {
	main           bool
	imports        map[string]bool            // folders of the module
	code, comments int                        // lines
	receivers      map[string]int             // methods, by type
	names          []string                   // of unexported functions and methods
	kinds          map[string]map[string]bool // by name: type, function, method
	shipped        bool
}

func valueNames() []string {
	return []string{"code", "import", "comments", "one-word", "shared", "receiver", "package", "tests", "surface", "promises"}
}

// importDir has the program that moves people over, once: its code lines are counted apart.
const importDir = "cmd/uwf-import"

// values are what bars are about: code lines of what is shipped, those of importDir apart; comment lines per code line;
// the share of one-word names among unexported functions and methods, in percent; names that
// a type, a function and a method of a package share; the largest receiver, in methods; the largest package, in code lines; tests, scripts among them;
// commands and flags; what the README promises.
func (h *house) values() map[string]float64 {
	v := map[string]float64{"tests": float64(h.tests), "surface": float64(h.surface), "promises": float64(h.promises)}
	var comments, names, short float64
	for dir, p := range h.shipped() {
		if dir == importDir || strings.HasPrefix(dir, importDir+"/") {
			v["import"] += float64(p.code)
		} else {
			v["code"] += float64(p.code)
		}
		v["package"] = max(v["package"], float64(p.code))
		comments += float64(p.comments)
		n, one := h.countNames(p)
		names += float64(n)
		short += float64(one)
		v["shared"] += float64(len(p.sharedNames()))
		for _, n := range p.receivers {
			v["receiver"] = max(v["receiver"], float64(n))
		}
	}
	if v["code"] > 0 {
		v["comments"] = comments / (v["code"] + v["import"])
	}
	if names > 0 {
		v["one-word"] = 100 * short / names
	}
	return v
}

func (h *house) shipped() map[string]*pkg {
	out := map[string]*pkg{}
	for dir, p := range h.packages {
		if p.shipped {
			out[dir] = p
		}
	}
	return out
}

// countNames counts the names of a package, but for those that an interface of the module
// asks for, and those among them that are one lower-case word.
func (h *house) countNames(p *pkg) (all, oneWord int) {
	for _, name := range p.names {
		if h.methods[name] {
			continue
		}
		all++
		if strings.IndexFunc(name, unicode.IsUpper) < 0 {
			oneWord++
		}
	}
	return all, oneWord
}

// sharedNames are those that two of a type, a function and a method of the package have.
func (p *pkg) sharedNames() (names []string) {
	for name, kinds := range p.kinds {
		if len(kinds) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// measure looks at all packages of the module in a folder.
func measure(root string) (*house, error) {
	module, err := readModulePath(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	h := &house{packages: map[string]*pkg{}, methods: map[string]bool{}}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		switch {
		case d.IsDir() && name != root && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")):
			return filepath.SkipDir
		case d.IsDir() && name != root && hasFile(name, "go.mod"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(base, ".txtar") && strings.Contains(filepath.ToSlash(name), "/testdata/script/"):
			h.tests++
			return nil
		case !strings.HasSuffix(base, ".go") || strings.Contains(filepath.ToSlash(name), "/testdata/"):
			return nil
		}
		return h.readFile(root, name, module)
	})
	if err != nil {
		return nil, err
	}
	for dir, p := range h.packages {
		if p.main {
			h.ship(dir)
		}
	}
	if h.surface, err = countLines(filepath.Join(root, "cmd/uwf/acceptance/commands/testdata/surface.txt"), regexp.MustCompile(`\S`)); err != nil {
		return nil, err
	}
	h.promises, err = countPromises(filepath.Join(root, "README.md"))
	return h, err
}

func hasFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func readModulePath(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("%s names no module", file)
}

// ship marks a package, and all that it imports, as part of what users get: what only tests
// import is not.
func (h *house) ship(dir string) {
	p := h.packages[dir]
	if p == nil || p.shipped {
		return
	}
	p.shipped = true
	for to := range p.imports {
		h.ship(to)
	}
}

// readFile adds a file to what is measured.
func (h *house) readFile(root, name, module string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		h.tests += countTests(f)
		return nil
	}
	rel, err := filepath.Rel(root, filepath.Dir(name))
	if err != nil {
		return err
	}
	dir := filepath.ToSlash(rel)
	p := h.packages[dir]
	if p == nil {
		p = &pkg{imports: map[string]bool{}, receivers: map[string]int{}, kinds: map[string]map[string]bool{}}
		h.packages[dir] = p
	}
	p.main = p.main || f.Name.Name == "main"
	for _, i := range f.Imports {
		if to, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasPrefix(to, module+"/") {
			p.imports[strings.TrimPrefix(to, module+"/")] = true
		}
	}
	code, comments := countCode(src)
	p.code += code
	p.comments += comments
	h.readNames(p, f)
	return nil
}

// countCode counts the lines that hold a token, and those that hold a comment alone.
func countCode(src []byte) (code, comments int) {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	held := map[int]token.Token{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		line := file.Line(pos)
		for n := range 1 + strings.Count(lit, "\n") {
			if tok != token.COMMENT || held[line+n] == 0 {
				held[line+n] = tok
			}
		}
	}
	for _, tok := range held {
		if tok == token.COMMENT {
			comments++
		} else {
			code++
		}
	}
	return code, comments
}

// readNames notes functions, methods, and what interfaces ask for.
func (h *house) readNames(p *pkg, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					h.methods[name.Name] = true
				}
			}
		case *ast.TypeSpec:
			p.noteKind(n.Name.Name, "type")
		case *ast.FuncDecl:
			kind := "function"
			if n.Recv != nil {
				p.receivers[receiverName(n.Recv.List[0].Type)]++
				kind = "method"
			}
			p.noteKind(n.Name.Name, kind)
			if !n.Name.IsExported() && n.Name.Name != "main" && n.Name.Name != "_" {
				p.names = append(p.names, n.Name.Name)
			}
		}
		return true
	})
}

func (p *pkg) noteKind(name, kind string) {
	if p.kinds[name] == nil {
		p.kinds[name] = map[string]bool{}
	}
	p.kinds[name][kind] = true
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)([^a-z]|$)`)

func countTests(f *ast.File) int {
	n := 0
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && testName.MatchString(fn.Name.Name) && fn.Name.Name != "TestMain" {
			n++
		}
	}
	return n
}

func countLines(file string, like *regexp.Regexp) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if like.MatchString(s.Text()) {
			n++
		}
	}
	return n, nil
}

var promise = regexp.MustCompile(`^\d+\. `)

// countPromises counts the numbered sentences of the README's chapter "What it promises".
func countPromises(file string) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, text, ok := strings.Cut(string(data), "\n## What it promises\n")
	if !ok {
		return 0, fmt.Errorf("%s has no chapter \"What it promises\"", file)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	n := 0
	for line := range strings.Lines(text) {
		if promise.MatchString(line) {
			n++
		}
	}
	return n, nil
}

// ranked is something with a number.
type ranked struct {
	name  string
	value int
	note  string
}

// writeWorst lists what is farthest from the bars.
func (h *house) writeWorst(out io.Writer, most int) {
	var packages, receivers, names, shared []ranked
	for dir, p := range h.shipped() {
		packages = append(packages, ranked{dir, p.code, ""})
		for recv, n := range p.receivers {
			receivers = append(receivers, ranked{path.Join(dir, recv), n, ""})
		}
		all, oneWord := h.countNames(p)
		names = append(names, ranked{dir, oneWord, fmt.Sprintf(" of %d", all)})
		for _, name := range p.sharedNames() {
			shared = append(shared, ranked{path.Join(dir, name), len(p.kinds[name]), ""})
		}
	}
	for _, list := range []struct {
		title string
		all   []ranked
	}{{"code lines of packages", packages}, {"methods of receivers", receivers}, {"one-word names", names}, {"names that a type, a function and a method share", shared}} {
		fmt.Fprintln(out, list.title)
		slices.SortFunc(list.all, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.name, b.name))
		})
		for _, r := range list.all[:min(most, len(list.all))] {
			fmt.Fprintf(out, "  %6d%s %s\n", r.value, r.note, r.name)
		}
	}
	fmt.Fprintln(out)
}
