package workflow_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
)

func TestKindOfRef(t *testing.T) {
	for ref, want := range map[string]workflow.RefKind{
		"C700MP4XFW7FA": workflow.RefHash, "c700mp4xfw7fa": workflow.RefName, "solve-issue": workflow.RefName,
		"./x": workflow.RefPath, "x.yaml": workflow.RefPath, "x.yml": workflow.RefPath, `a\b`: workflow.RefPath, "x.json": workflow.RefName,
	} {
		if got := workflow.KindOfRef(ref); got != want {
			t.Errorf("KindOfRef(%q) = %v, want %v", ref, got, want)
		}
	}
}

func TestCandidates(t *testing.T) {
	var list []string
	for _, dir := range []string{"a/b/", "a/", ""} {
		for _, folder := range []string{".uwf/workflows", ".workflow", ".workflows"} {
			for _, file := range []string{"x.yaml", "x.yml", "x/index.yaml", "x/index.yml"} {
				list = append(list, dir+folder+"/"+file)
			}
		}
	}
	want := strings.Join(list, " ")
	if got := strings.Join(workflow.Candidates("x", "a/b/"), " "); got != want {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"../x", "a/b", "", "$x"} {
		if got := workflow.Candidates(name, "."); got != nil {
			t.Errorf("Candidates(%q) = %v", name, got)
		}
	}
	if got := len(workflow.Candidates("x", "../../..")); got != 12 {
		t.Errorf("outside of the root: %d candidates", got)
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"planner", "developer", "reviewer", "$END"}
	for name, want := range map[string]string{
		"plannr": "planner", "Planner": "planner", "revieewr": "reviewer", "END": "$END", "$end": "$END", "tester": "",
		"x": "", "": "", strings.Repeat("planner", 10): "",
	} {
		if got := workflow.Suggest(name, names); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"solve-issue": true, "a": true, "规划者": true, "v1.2_x": true, "9": true,
		"": false, "_": false, "$START": false, "-a": false, ".a": false, "a/b": false, "a b": false, "a\n": false,
		"a\xff": false, strings.Repeat("x", 65): false,
	} {
		if got := workflow.CheckName(name); (got == "") != ok {
			t.Errorf("CheckName(%q) = %q", name, got)
		}
	}
}
