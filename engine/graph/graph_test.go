package graph_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/testmode"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with: go test -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", file, got, want)
	}
}

func parse(t *testing.T, file string) *workflow.Definition {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := workflow.Parse(filepath.Base(file), data, workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func step(role, status string) moderator.Output {
	return moderator.Output{Role: role, Output: map[string]any{
		"$status": status, "plan": "p", "files": []any{"f"}, "summary": "s", "tests": "t", "question": "q", "comments": "c",
	}}
}

func TestDrawings(t *testing.T) {
	const example = "../../examples/solve-issue.yaml"
	steps := []moderator.Output{step("planner", "ready"), step("developer", "done"), step("reviewer", "rejected"), step("developer", "done"), step("reviewer", "rejected")}
	for _, tt := range []struct {
		name, file string
		steps      []moderator.Output // nil: not marked
	}{
		{"solve-issue", example, nil},
		{"solve-issue-started", example, []moderator.Output{}},
		{"solve-issue-loops", example, steps},
		{"solve-issue-asks", example, append(steps, step("developer", "blocked"))},
		{"solve-issue-answered", example, append(steps, step("developer", "blocked"), step("developer", "done"))},
		{"solve-issue-ended", example, append(steps, step("developer", "done"), step("reviewer", "approved"))},
		{"twelve", "testdata/twelve.yaml", nil},
	} {
		d := parse(t, tt.file)
		g := graph.Of(d)
		if tt.steps != nil {
			g.Mark(d, moderator.Thread{Steps: tt.steps})
		}
		golden(t, tt.name+".80.golden", g.Text(graph.TextOptions{Width: 80}))
		golden(t, tt.name+".44.golden", g.Text(graph.TextOptions{Width: 44}))
		golden(t, tt.name+".ascii.golden", g.Text(graph.TextOptions{Width: 80, ASCII: true}))
		golden(t, tt.name+".mmd.golden", g.Mermaid(0))
	}
}

// two is a workflow of two roles; edges are from, label, to.
func two(a, b string, edges ...[3]string) *workflow.Definition {
	d := &workflow.Definition{Name: "two", Roles: map[string]workflow.Role{a: {Name: a}, b: {Name: b}},
		Graph: map[string][]workflow.Edge{workflow.Start: {{To: a}}}}
	for _, e := range edges {
		d.Graph[e[0]] = append(d.Graph[e[0]], workflow.Edge{When: workflow.When{Kind: workflow.OnStatus, Value: e[1]}, To: e[2]})
	}
	return d
}

// What the kinds of edges are called.
func TestLabels(t *testing.T) {
	d := two("a", "b", [3]string{"a", "again", "b"}, [3]string{"b", "ok", workflow.End})
	d.Graph["a"] = []workflow.Edge{
		{When: workflow.When{Kind: workflow.OnCondition, Value: "rejected"}, To: "b"},
		{When: workflow.When{Kind: workflow.OnCondition, Value: "lost"}, To: "a"},
		{To: workflow.End},
	}
	d.Graph["b"] = append(d.Graph["b"], workflow.Edge{To: "a"})
	d.Graph["b"][0].Approval = &workflow.Approval{Not: []string{workflow.ApprovalStarter}}
	d.Resume = &workflow.Edge{To: "b"}
	var got []string
	g := graph.Of(d)
	for _, e := range g.Edges {
		got = append(got, fmt.Sprintf("%s -%s-> %s", g.Nodes[e.From].Name, e.Label, g.Nodes[e.To].Name))
	}
	want := "$START -new-> a; $START -resume-> b; a -rejected-> b; a -lost-> a; a -else-> $END; b -ok (approval)-> $END; b -_-> a"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}

// The way of a thread that no edge explains everywhere.
func TestMark(t *testing.T) {
	d := two("a", "b", [3]string{"a", "go", "b"}, [3]string{"b", "back", "a"}, [3]string{"b", "ok", workflow.End})
	for r, role := range d.Roles {
		role.Schema = map[string]any{"type": "object", "properties": map[string]any{"$status": map[string]any{"type": "string"}}}
		d.Roles[r] = role
	}
	d.StatusKey, d.AgentSuspends, d.Resume = "$status", true, &workflow.Edge{To: "b", Prompt: "p"}
	for r, edges := range d.Graph {
		for i := range edges {
			d.Graph[r][i].Prompt = "p"
		}
	}
	out := func(role, status string) moderator.Output {
		return moderator.Output{Role: role, Output: map[string]any{"$status": status, "reason": "r"}}
	}
	for _, tt := range []struct {
		name  string
		steps []moderator.Output
		want  string
	}{
		{"started", nil, "at a; $START→a:1"},
		{"loop", []moderator.Output{out("a", "go"), out("b", "back"), out("a", "go")}, "at b; $START→a:1 a→b:2 b→a:1"},
		{"asked once more", []moderator.Output{out("a", "go"), out("a", "go")}, "at b; $START→a:1 a→b:1"},
		{"suspends itself", []moderator.Output{out("a", "$SUSPEND")}, "at $SUSPEND; $START→a:1 a→$SUSPEND:1"},
		{"answered", []moderator.Output{out("a", "$SUSPEND"), out("a", "go")}, "at b; $START→a:1 a→b:1 a→$SUSPEND:1"},
		{"ended", []moderator.Output{out("a", "go"), out("b", "ok")}, "at $END; $START→a:1 a→b:1 b→$END:1"},
		{"reopened", []moderator.Output{out("a", "go"), out("b", "ok"), out("b", "back")}, "at a; $START→a:1 $START→b:1 a→b:1 b→a:1 b→$END:1"},
		{"unknown role", []moderator.Output{out("x", "go")}, "at ; "},
		{"unknown status", []moderator.Output{out("a", "what")}, "at a; $START→a:1"},
	} {
		g := graph.Of(d)
		g.Mark(d, moderator.Thread{Steps: tt.steps})
		var taken []string
		for _, e := range g.Edges {
			if e.Taken > 0 {
				taken = append(taken, fmt.Sprintf("%s→%s:%d", g.Nodes[e.From].Name, g.Nodes[e.To].Name, e.Taken))
			}
		}
		if got := "at " + g.Here() + "; " + strings.Join(taken, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		checkText(t, g, 60)
		checkMermaid(t, g, 0)
	}
}

// In a workflow of conditions the way of a long thread is found without deciding
// everything again.
func TestMarkConditions(t *testing.T) {
	d := parse(t, "testdata/conditions.yaml")
	out := func(role string, ok bool) moderator.Output {
		return moderator.Output{Role: role, Output: map[string]any{"ok": ok, "much": ok}, Body: strings.Repeat("x", 1000)}
	}
	var steps []moderator.Output
	for range 500 {
		steps = append(steps, out("a", true), out("b", false))
	}
	g := graph.Of(d)
	g.Mark(d, moderator.Thread{Steps: append(steps, out("a", true), out("b", true))})
	golden(t, "conditions.80.golden", g.Text(graph.TextOptions{Width: 80}))
	short := graph.Of(d)
	short.Mark(d, moderator.Thread{Steps: steps[:3]})
	golden(t, "conditions-short.80.golden", short.Text(graph.TextOptions{Width: 80}))
}

// hostile are names and statuses that a drawing must survive.
func hostile() []string {
	return []string{
		`"]`, `"]; click n0 "javascript:alert(1)"`, "end", "graph", "subgraph", "style x:#fff;", "classDef a:#b;", "%%{init: {}}%%", "%% x",
		"`**bold**`", "<img src=x onerror=alert(1)>", "&quot;", "#quot;", "#35;", "a\nb", "a\r\n  click n1", "\x1b[31m", "\u202eevil", "x\u0000y", "bad \xff",
		"|", "||", "-->", "---", "o--o", "{{", "((", "1. list", "- list", "fa:fa-ban", "https://example.com", "$$x^2$$", "\U0001f600", "👩‍👩‍👧", "规划者", "e\u0301",
		";", ":::x", "@{ shape: cyl }", "\\", "\\\"", "'", "", " ", "_", "*a*", strings.Repeat("long-name.", 30), strings.Repeat("x", 500),
		"accTitle: x", "direction LR", "x direction  TB y", "linkStyle default", "call f()", "href", "~~~", "==>", "x--x", "ﬂ°°34¶ß",
	}
}

func TestHostileNames(t *testing.T) {
	for _, s := range hostile() {
		for _, d := range []*workflow.Definition{
			two(s, "b", [3]string{s, "x", "b"}, [3]string{"b", "y", workflow.End}),
			two("a", "b", [3]string{"a", s, "b"}, [3]string{"b", s, "a"}, [3]string{"b", s + "2", workflow.Suspend}, [3]string{"b", "z", workflow.End}),
		} {
			d.Name = s
			for _, marked := range []bool{false, true} {
				g := graph.Of(d)
				if marked {
					g.Mark(d, moderator.Thread{Steps: []moderator.Output{{Role: s, Output: map[string]any{"$status": s}}}})
				}
				checkMermaid(t, g, 0)
				for _, w := range []int{0, 20, 33, 80} {
					checkText(t, g, w)
				}
			}
		}
	}
}

// Every line of a Mermaid text is one of these, so nothing in a name can be
// anything else than a label.
var mermaidLine = regexp.MustCompile(`^(flowchart TD|  n\d+(\["LABEL"\]|\(\["LABEL"\]\)|\{\{"LABEL"\}\})|  n\d+ (-->|-\.->)(\|"LABEL"\|)? n\d+|  classDef (been|here) stroke:#[0-9a-f]{6},stroke-width:\dpx|  class n\d+(,n\d+)* (been|here)|  linkStyle \d+(,\d+)* stroke:#2da44e,stroke-width:3px)$`)

var label = regexp.MustCompile(`"(?:[\pL\pNd\pM ]|[\pL\pNd][-_.][\pL\pNd]|[-_.]|#\d+;)*"`)

func checkMermaid(t *testing.T, g *graph.Graph, limit int) {
	t.Helper()
	s := g.Mermaid(limit)
	if limit > 0 && len(s) > limit || len(s) > graph.MermaidSize {
		t.Errorf("%d bytes, the limit is %d", len(s), limit)
	}
	if strings.Contains(s, "direction ") {
		t.Errorf("a command in a label: %s", s)
	}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if !mermaidLine.MatchString(label.ReplaceAllString(line, `"LABEL"`)) {
			t.Errorf("not a line of Mermaid that is expected: %q", line)
		}
		if regexp.MustCompile(`(^|[^\pL\pNd\pM])[-_.]|[-_.]([^\pL\pNd]|$)`).MatchString(strings.Join(label.FindAllString(line, -1), "")) {
			t.Errorf("a separator that doesn't stand between letters: %q", line)
		}
	}
}

func checkText(t *testing.T, g *graph.Graph, width int) {
	t.Helper()
	for _, ascii := range []bool{false, true} {
		s := g.Text(graph.TextOptions{Width: width, ASCII: ascii})
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\r\x00\u202e") {
			t.Errorf("the drawing holds what a terminal acts on: %q", s)
		}
		for line := range strings.Lines(s) {
			if w := displaywidth.String(strings.TrimSuffix(line, "\n")); w > max(width, graph.MinWidth) {
				t.Errorf("a line of %d columns, there are %d: %q\n%s", w, width, line, s)
			}
		}
	}
}

// Whatever the graph, the drawing keeps to its width and shows every role and edge.
func TestRandomGraphs(t *testing.T) {
	for seed := range testmode.Seeds(t, 20, 60) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := random(r, 1+r.IntN(20))
		g := graph.Of(d)
		if seed%2 == 1 {
			g.Mark(d, moderator.Thread{})
		}
		for _, w := range []int{20, 41, 80, 200} {
			checkText(t, g, w)
		}
		checkMermaid(t, g, 0)
		wide := g.Text(graph.TextOptions{Width: 400})
		for _, e := range g.Edges {
			if !strings.Contains(wide, e.Label) || !strings.Contains(wide, g.Nodes[e.To].Name) {
				t.Fatalf("seed %d: %v is not drawn:\n%s", seed, e, wide)
			}
		}
	}
}

func random(r *rand.Rand, roles int) *workflow.Definition {
	d := &workflow.Definition{Name: "random", Roles: map[string]workflow.Role{}, Graph: map[string][]workflow.Edge{}}
	name := func(i int) string { return fmt.Sprintf("role-%d%s", i, strings.Repeat("x", i*7%40)) }
	for i := range roles {
		d.Roles[name(i)] = workflow.Role{Name: name(i)}
	}
	d.Graph[workflow.Start] = []workflow.Edge{{To: name(0)}}
	for i := range roles {
		for k := range 1 + r.IntN(5) {
			to := []string{workflow.End, workflow.Suspend, name(r.IntN(roles)), name(r.IntN(roles)), name((i + 1) % roles)}[r.IntN(5)]
			d.Graph[name(i)] = append(d.Graph[name(i)], workflow.Edge{When: workflow.When{Kind: workflow.OnStatus, Value: fmt.Sprintf("status-%d-%d", i, k)}, To: to})
		}
	}
	return d
}

// Large graphs are drawn with less, and never above the limit.
func TestMermaidLimits(t *testing.T) {
	d := random(rand.New(rand.NewPCG(7, 7)), 200)
	g := graph.Of(d)
	g.Mark(d, moderator.Thread{})
	whole := g.Mermaid(0)
	for _, limit := range []int{len(whole), len(whole) - 1, 10_000, 2_000, 200, 100} {
		checkMermaid(t, g, limit)
	}
	if s := g.Mermaid(100); !strings.Contains(s, "200 roles") {
		t.Error(s)
	}
	if s := graph.Of(d).Mermaid(2_000); !strings.Contains(s, "200 roles") {
		t.Errorf("nothing is marked: %s", s)
	}
	many := two("a", "b", [3]string{"b", "y", workflow.End})
	for i := range graph.MermaidEdges + 10 {
		many.Graph["a"] = append(many.Graph["a"], workflow.Edge{When: workflow.When{Kind: workflow.OnStatus, Value: fmt.Sprint(i)}, To: "b"})
	}
	if s := graph.Of(many).Mermaid(0); strings.Count(s, "-->") != 3 {
		t.Errorf("%.500s", s)
	}
	if s := graph.Of(random(rand.New(rand.NewPCG(1, 1)), 200)).Text(graph.TextOptions{Width: 80}); len(s) == 0 {
		t.Error("nothing drawn")
	}
}

func FuzzDraw(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s, s, 40)
	}
	f.Fuzz(func(t *testing.T, role, status string, width int) {
		d := two(role, "b", [3]string{role, status, "b"}, [3]string{"b", status, role}, [3]string{"b", role, workflow.End})
		g := graph.Of(d)
		checkMermaid(t, g, 0)
		checkText(t, g, width%300)
	})
}
