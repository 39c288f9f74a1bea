package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/cmd/internal/app"
)

// What a script would write for jq does the same here.
func TestJQ(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "text")
	if err := os.WriteFile(file, []byte("two \"lines\"\nof text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := `{"choices":[{"message":{"content":"a\nb \u00e9 \ud83d\ude00"}}],"n":12345678901234567890}`
	tests := []struct {
		in   string
		args []string
		want string
	}{
		{answer, []string{"-r", ".choices[0].message.content"}, "a\nb é 😀\n"},
		{answer, []string{"-j", ".choices[0].message.content", "-"}, "a\nb é 😀"},
		{answer, []string{"-c", ".choices[0].message"}, `{"content":"a\nb é 😀"}` + "\n"},
		{answer, []string{".n"}, "12345678901234567890\n"},
		{answer, []string{".choices | length"}, "1\n"},
		{"", []string{"-nc", "--arg", "q", `say "hi"`, "--argjson", "n", "3", "{q: $q, n: $n}"}, `{"n":3,"q":"say \"hi\""}` + "\n"},
		{"", []string{"-n", "-c", "--rawfile", "p", file, "{p: $p}"}, `{"p":"two \"lines\"\nof text\n"}` + "\n"},
		{"1 2", []string{"-c", "--slurpfile", "x", "-", "-n", "$x"}, "[1,2]\n"},
		{"a\nb", []string{"-R", "-r", "ascii_upcase"}, "A\nB\n"},
		{"a\nb", []string{"-Rs", "."}, `"a\nb"` + "\n"},
		{"1 2 3", []string{"-s", "-c", "add"}, "6\n"},
		{"[1,[2]]", []string{"."}, "[\n  1,\n  [\n    2\n  ]\n]\n"},
		{"1", []string{"--", "-1 + ."}, "0\n"},
		{"1", []string{"halt"}, ""},
		{"1 2", []string{"empty"}, ""},
		{"{}", []string{"-c", "$ENV, env"}, "{}\n{}\n"},
	}
	for _, tt := range tests {
		p := agenttest.NewProcess(t, agenttest.Task(t), "SECRET=1")
		p.Dir = dir
		if err := uwf(t, p, tt.in, append([]string{"jq"}, tt.args...)...); err != nil || p.Out.String() != tt.want {
			t.Errorf("jq %q printed %q, %v; want %q", tt.args, p.Out, err, tt.want)
		}
	}
}

func TestJQMistakes(t *testing.T) {
	tests := []struct {
		in   string
		args []string
		code int
		want string
	}{
		{"", nil, 2, "give a filter"},
		{"", []string{".", "a", "b"}, 2, "one file at most"},
		{"", []string{".["}, 2, "the filter"},
		{"", []string{"$nobody"}, 2, "nobody"},
		{"", []string{"--arg", "x"}, 2, "a name and a value"},
		{"", []string{"-n", "--argjson", "x", "{", "."}, 2, "no JSON"},
		{"", []string{"-n", "--argjson", "x", "1 2", "."}, 2, "one JSON value"},
		{"", []string{"--tab", "."}, 2, "--tab"},
		{"", []string{"-rx", "."}, 2, "-x"},
		{"", []string{".", "/no/such/file"}, 2, "no such file"},
		{"", []string{"-n", "--rawfile", "x", "/no/such/file", "."}, 2, "no such file"},
		{"{", []string{"."}, 2, "no JSON"},
		{"1", []string{".a"}, 1, "uwf agent jq"},
		{"null", []string{"-e", "."}, 1, ""},
		{"null", []string{`import "x" as x; .`}, 2, "the filter"},
		{"1", []string{"input_filename"}, 2, "input_filename"},
	}
	for _, tt := range tests {
		p := agenttest.NewProcess(t, agenttest.Task(t))
		err := uwf(t, p, tt.in, append([]string{"jq"}, tt.args...)...)
		if app.ExitCodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("jq %q: %v (exit code %d)", tt.args, err, app.ExitCodeOf(err))
		}
	}
	p := agenttest.NewProcess(t, agenttest.Task(t))
	if err := uwf(t, p, "", "jq", "-h"); err != nil {
		t.Errorf("help: %v", err)
	}
}
