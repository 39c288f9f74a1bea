package lazyregexp_test

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

func TestCompiledWhenFirstUsed(t *testing.T) {
	broken := lazyregexp.New(`(`) // compiles nothing yet
	defer func() {
		if recover() == nil {
			t.Error("an expression that does not compile was used")
		}
	}()
	broken.MatchString("")
}

// TestExpressionsCompile finds what would panic at its first use, which may be at a
// user's.
func TestExpressionsCompile(t *testing.T) {
	found := 0
	for dir, files := range users(t, "../..") {
		for _, call := range expressions(t, dir, files) {
			found++
			if call.expr == nil {
				t.Errorf("%s: the expression is not a constant of the source", call.at)
			} else if _, err := regexp.Compile(constant.StringVal(call.expr)); err != nil {
				t.Errorf("%s: %v", call.at, err)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d expressions: are they still looked for where they are?", found)
	}
}

// users are the files, by folder, of the packages with expressions.
func users(t *testing.T, root string) map[string][]string {
	t.Helper()
	all, using := map[string][]string{}, map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "lazyregexp" || strings.HasPrefix(name, ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		dir := filepath.Dir(path)
		all[dir] = append(all[dir], path)
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "lazyregexp.New(") {
			using[dir] = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range using {
		using[dir] = all[dir]
	}
	return using
}

type expression struct {
	at   token.Position
	expr constant.Value
}

// expressions are the arguments of lazyregexp.New in a package. Constants need none
// of what it imports, so that none of it is read, nor are bodies of functions.
func expressions(t *testing.T, dir string, files []string) (out []expression) {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: noImports{}, IgnoreFuncBodies: true, Error: func(error) {}}
	_, _ = conf.Check(dir, fset, parsed, info) // what is imported is missing
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "New" {
				if x, ok := fun.X.(*ast.Ident); ok && x.Name == "lazyregexp" {
					out = append(out, expression{fset.Position(call.Pos()), info.Types[call.Args[0]].Value})
				}
			}
			return true
		})
	}
	return out
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not read") }
