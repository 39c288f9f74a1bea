package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// place is one condition under which something is refused.
type place struct {
	id       int
	file     string
	line     int
	function string
	// cond is the condition's source, for "err != nil" with what gave the error; where
	// a function has it more than once, with a number.
	cond   string
	tests  []string // the tests in which it refuses
	killer string   // the test that fails without it
}

func (p *place) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.file, p.line, p.function, p.cond)
}

// key finds a place again after its lines have moved.
func (p *place) key() string { return p.file + "\n" + p.function + "\n" + p.cond }

// folder is a package of the list.
type folder struct {
	tests  string // the folder of the tests that guard it
	folder string
	files  []listed
	name   string // the package's name
	places []*place
	edits  map[string][]edit // by file
	// mayPass are the functions and methods of the package: true for those that may
	// return no error.
	mayPass map[string]bool
}

// edit is what the instrumentation writes around a piece of a file, or before it.
type edit struct {
	from, to      int
	before, after string
}

// finder looks for the places of one file.
type finder struct {
	pkg   *folder
	file  listed
	fset  *token.FileSet
	src   []byte
	stack []ast.Node
	prev  map[ast.Stmt]ast.Stmt
	tail  map[ast.Stmt]bool // the statements with which a function ends
}

func (pkg *folder) findPlaces(root string) error {
	pkg.edits = map[string][]edit{}
	if err := pkg.readFunctions(root); err != nil {
		return err
	}
	for _, file := range pkg.files {
		name := filepath.Join(root, filepath.FromSlash(file.name))
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := &finder{pkg: pkg, file: file, fset: token.NewFileSet(), src: src,
			prev: map[ast.Stmt]ast.Stmt{}, tail: map[ast.Stmt]bool{}}
		tree, err := parser.ParseFile(f.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg.name = tree.Name.Name
		ast.Inspect(tree, f.visit)
	}
	seen := map[string]int{}
	for _, p := range pkg.places {
		key := p.key()
		if seen[key]++; seen[key] > 1 {
			p.cond += fmt.Sprintf(" #%d", seen[key])
		}
	}
	return nil
}

// readFunctions finds the functions of a package that may return no error. To return
// what they return is no refusal.
func (pkg *folder) readFunctions(root string) error {
	pkg.mayPass = map[string]bool{}
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg.folder), "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			pkg.mayPass[nameOf(f)] = pkg.mayPass[nameOf(f)]
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if s, ok := n.(*ast.ReturnStmt); ok {
					var last ast.Expr
					if len(s.Results) > 0 {
						last = s.Results[len(s.Results)-1]
					}
					if id, ok := last.(*ast.Ident); last == nil || ok && (id.Name == "nil" || id.Name == "err") {
						pkg.mayPass[nameOf(f)] = true
					}
				}
				_, inner := n.(*ast.FuncLit)
				return !inner
			})
		}
	}
	return nil
}

// nameOf is a function's name; a method's begins with a dot.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv != nil {
		return "." + f.Name.Name
	}
	return f.Name.Name
}

// keep leaves out the places of other functions.
func (pkg *folder) keep(function *regexp.Regexp) {
	pkg.places = slices.DeleteFunc(pkg.places, func(p *place) bool { return !function.MatchString(p.function) })
}

func (f *finder) visit(n ast.Node) bool {
	if n == nil {
		f.stack = f.stack[:len(f.stack)-1]
		return true
	}
	f.stack = append(f.stack, n)
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			f.markTail(n.Body)
		}
	case *ast.FuncLit:
		f.markTail(n.Body)
	case *ast.BlockStmt:
		f.markPrevious(n.List)
	case *ast.CaseClause:
		f.markPrevious(n.Body)
		f.clause(n)
	case *ast.IfStmt:
		if f.refuses(n.Body.List) {
			f.split(n.Cond, false, f.origin(n))
		}
		if other, ok := n.Else.(*ast.BlockStmt); ok && f.refuses(other.List) {
			f.split(n.Cond, true, f.origin(n))
		}
	case *ast.ReturnStmt:
		f.last(n)
	case *ast.CallExpr:
		if f.file.checks[calledName(n)] && len(n.Args) > 0 {
			f.split(n.Args[0], true, "")
		}
	}
	return true
}

func (f *finder) markPrevious(list []ast.Stmt) {
	for i := 1; i < len(list); i++ {
		f.prev[list[i]] = list[i-1]
	}
}

// markTail notes the statements after which a function has nothing more to do: Go
// wants them to return.
func (f *finder) markTail(s ast.Stmt) {
	if s == nil {
		return
	}
	f.tail[s] = true
	lastOf := func(list []ast.Stmt) {
		if len(list) > 0 {
			f.markTail(list[len(list)-1])
		}
	}
	switch s := s.(type) {
	case *ast.BlockStmt:
		lastOf(s.List)
	case *ast.IfStmt:
		f.markTail(s.Body)
		f.markTail(s.Else)
	case *ast.SwitchStmt:
		f.markTail(s.Body)
		for _, c := range s.Body.List {
			lastOf(c.(*ast.CaseClause).Body)
		}
	case *ast.TypeSwitchStmt:
		for _, c := range s.Body.List {
			lastOf(c.(*ast.CaseClause).Body)
		}
	}
}

// inside is the function that is being read: its results and its name.
func (f *finder) inside() (results *ast.FieldList, name string) {
	for i := len(f.stack) - 1; i >= 0; i-- {
		switch n := f.stack[i].(type) {
		case *ast.FuncLit:
			if results == nil {
				results = n.Type.Results
				if results == nil {
					results = &ast.FieldList{}
				}
			}
		case *ast.FuncDecl:
			if results == nil {
				results = n.Type.Results
			}
			name = n.Name.Name
			if n.Recv != nil {
				name = strings.TrimLeft(f.text(n.Recv.List[0].Type), "*") + "." + name
			}
			return results, name
		case *ast.ValueSpec:
			name = n.Names[0].Name
		}
	}
	return results, name
}

// refuses reports whether statements end in a refusal: they return an error, put one
// into err, or call what notes a mistake.
func (f *finder) refuses(list []ast.Stmt) bool {
	for _, s := range list {
		if x, ok := s.(*ast.ExprStmt); ok && f.file.calls[calledName(x.X)] {
			return true
		}
	}
	if len(list) == 0 {
		return false
	}
	switch s := list[len(list)-1].(type) {
	case *ast.AssignStmt:
		return len(s.Lhs) == 1 && baseName(f.text(s.Lhs[0])) == "err" && s.Tok == token.ASSIGN && f.makes(s.Rhs[0])
	case *ast.ReturnStmt:
		return f.returnsError(s) && !f.passesOn(s, list)
	}
	return false
}

func (f *finder) returnsError(s *ast.ReturnStmt) bool {
	results, name := f.inside()
	if results == nil || len(results.List) == 0 || len(s.Results) == 0 {
		return false
	}
	last := s.Results[len(s.Results)-1]
	if f.file.calls[calledName(last)] {
		return true
	}
	count := results.NumFields()
	switch typ := f.text(results.List[len(results.List)-1].Type); {
	case len(s.Results) != count: // what another function returns
		return false
	case typ == "error" || strings.HasSuffix(typ, "Error"):
		return f.text(last) != "nil"
	case typ == "bool":
		return f.text(last) == "false" && f.file.falses[baseName(name)]
	}
	return false
}

// passesOn reports whether what a return gives back is what was just asked for: it may
// be no error at all.
func (f *finder) passesOn(s *ast.ReturnStmt, list []ast.Stmt) bool {
	last := s.Results[len(s.Results)-1]
	if f.mayPass(last) {
		return true
	}
	if _, ok := last.(*ast.Ident); !ok {
		return false
	}
	for _, before := range list {
		a, ok := before.(*ast.AssignStmt)
		if ok && f.text(a.Lhs[len(a.Lhs)-1]) == f.text(last) {
			return len(a.Lhs) > 1 || f.mayPass(a.Rhs[0])
		}
	}
	return false
}

// mayPass reports whether what a call returns may be no error. Where it is given one,
// it only puts it in other words.
func (f *finder) mayPass(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	for _, arg := range call.Args {
		if f.text(arg) == "err" {
			return false
		}
	}
	if _, ok := call.Fun.(*ast.SelectorExpr); ok {
		return f.pkg.mayPass["."+calledName(x)]
	}
	return f.pkg.mayPass[calledName(x)]
}

func baseName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func calledName(x ast.Expr) string {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		return fn.Sel.Name
	}
	return ""
}

// clause looks at a case of a switch. One whose expressions are conditions is like an
// if; of others, and of default, the body is left out.
func (f *finder) clause(c *ast.CaseClause) {
	if !f.refuses(c.Body) {
		return
	}
	of := f.stack[len(f.stack)-3].(ast.Stmt) // the switch, and its block
	if s, ok := of.(*ast.SwitchStmt); ok && s.Tag == nil && c.List != nil {
		for _, x := range c.List {
			f.split(x, false, "")
		}
		return
	}
	cond := "default"
	if c.List != nil {
		cond = "case " + f.text(c.List[0])
		if len(c.List) > 1 {
			cond += ", …"
		}
	}
	way := "break"
	if f.tail[of] {
		way = f.returnNothing()
	}
	id := f.add(c.Pos(), cond)
	f.edit(c.Colon+1, c.Colon+1, fmt.Sprintf(" if !mutantGoesOn(%d) { %s };", id, way), "")
}

// last looks at the return at the end of a function: an error that is made there is
// what remains when nothing that is known was found. In a function in which false is a
// refusal, it may be a condition.
func (f *finder) last(s *ast.ReturnStmt) {
	results, name := f.inside()
	body, ok := f.stack[len(f.stack)-2].(*ast.BlockStmt)
	if !ok || results == nil || len(s.Results) != results.NumFields() || len(s.Results) == 0 {
		return
	}
	x := s.Results[len(s.Results)-1]
	text := f.text(x)
	if f.file.falses[baseName(name)] && f.text(results.List[len(results.List)-1].Type) == "bool" {
		if text != "true" && text != "false" {
			f.split(x, true, "")
			return
		}
	}
	if !f.tail[s] || len(body.List) < 2 || !(madeError.MatchString(text) || f.file.calls[calledName(x)]) || !f.returnsError(s) {
		return
	}
	switch f.stack[len(f.stack)-3].(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		id := f.add(s.Pos(), "at the end")
		f.edit(s.Pos(), s.Pos(), fmt.Sprintf("if !mutantGoesOn(%d) { %s }; ", id, f.returnNothing()), "")
	}
}

// makes reports whether an expression is certainly an error.
func (f *finder) makes(x ast.Expr) bool {
	if id, ok := x.(*ast.Ident); ok {
		return id.Name != "nil"
	}
	if madeError.MatchString(f.text(x)) {
		return true
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	name := calledName(x)
	if _, ok := call.Fun.(*ast.SelectorExpr); ok {
		name = "." + name
	}
	passes, ours := f.pkg.mayPass[name]
	return ours && !passes
}

var madeError = regexp.MustCompile(`^(fmt\.Errorf\(|errors\.New\(|&?(\w+\.)?\w*Error\{|(\w+\.)?Err[A-Z]\w*$)`)

// returnNothing is a return without an error.
func (f *finder) returnNothing() string {
	results, _ := f.inside()
	if results == nil {
		return "return"
	}
	var values []string
	for _, r := range results.List {
		for range max(len(r.Names), 1) {
			values = append(values, "*new("+f.text(r.Type)+")")
		}
	}
	return "return " + strings.Join(values, ", ")
}

// origin is what comes before a condition that says nothing by itself.
func (f *finder) origin(n *ast.IfStmt) string {
	s := n.Init
	if s == nil {
		s = f.prev[n]
	}
	switch s.(type) {
	case *ast.AssignStmt, *ast.DeclStmt:
		src := f.src[f.fset.Position(s.Pos()).Offset:f.fset.Position(s.End()).Offset]
		line, _, more := strings.Cut(string(src), "\n")
		if more {
			line += " …"
		}
		return line
	}
	return ""
}

// split divides a condition into the operands of which each refuses by itself. Not:
// the refusal is where the condition does not hold.
func (f *finder) split(x ast.Expr, not bool, origin string) {
	for _, part := range operands(x, not) {
		cond := f.text(part.x)
		if cond == "err != nil" && origin != "" {
			cond = origin + "; " + cond
		}
		name := "mutantHolds"
		if part.not {
			name = "mutantFails"
		}
		id := f.add(part.x.Pos(), cond)
		f.edit(part.x.Pos(), part.x.End(), fmt.Sprintf("%s(%d, ", name, id), ")")
	}
}

type operand struct {
	x   ast.Expr
	not bool
}

func operands(x ast.Expr, not bool) []operand {
	switch n := x.(type) {
	case *ast.ParenExpr:
		return operands(n.X, not)
	case *ast.UnaryExpr:
		if inner, ok := n.X.(*ast.ParenExpr); ok && n.Op == token.NOT {
			return operands(inner, !not)
		}
	case *ast.BinaryExpr:
		if n.Op != token.LOR && n.Op != token.LAND {
			break
		}
		left, right := operands(n.X, not), operands(n.Y, not)
		if (n.Op == token.LOR) != not {
			return append(left, right...)
		}
		// "a && (b || c)": b and c refuse, under a.
		var parts []operand
		for _, side := range [][]operand{left, right} {
			if len(side) > 1 {
				parts = append(parts, side...)
			}
		}
		if parts != nil {
			return parts
		}
	}
	return []operand{{x, not}}
}

func (f *finder) add(pos token.Pos, cond string) int {
	_, function := f.inside()
	id := len(f.pkg.places)
	f.pkg.places = append(f.pkg.places, &place{id: id, file: f.file.name,
		line: f.fset.Position(pos).Line, function: function, cond: cond})
	return id
}

func (f *finder) edit(from, to token.Pos, before, after string) {
	f.pkg.edits[f.file.name] = append(f.pkg.edits[f.file.name],
		edit{f.fset.Position(from).Offset, f.fset.Position(to).Offset, before, after})
}

// text is the source of a node on one line.
func (f *finder) text(n ast.Node) string {
	src := f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset]
	return strings.Join(strings.Fields(string(src)), " ")
}
