package gitcas

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestProtocolExamples: the nodes of docs/protocol.md have the hashes and digests that it
// says, so that another implementation can be checked against them.
func TestProtocolExamples(t *testing.T) {
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| type `(\\w+)`, payload `(.*)` \\| `(\\w+)` \\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(string(doc), -1)
	if len(rows) != 6 {
		t.Fatalf("%d examples were found", len(rows))
	}
	nodes := node.Map{}
	for _, row := range rows {
		payload, err := node.ParseJSON([]byte(row[2]))
		if err != nil {
			t.Fatal(err)
		}
		n := node.Node{Type: node.Hash(row[1]), Payload: payload}
		h, sum, err := n.Identify()
		if err != nil || string(h) != row[3] || string(sum) != row[4] {
			t.Errorf("%s: hash %s, Sum %s, %v", row[2], h, sum, err)
		}
		nodes[h] = n
		c := node.Closure{Schemas: &node.Schemas{}, Getter: nodes}
		digest, err := c.ComputeDigest(h)
		if want := strings.Trim(strings.Replace(row[5], "the same", row[4], 1), "`"); err != nil || string(digest) != want {
			t.Errorf("%s: digest %s, %v; want %s", row[2], digest, err, want)
		}
	}
}

// TestProtocolIsWhole: the page names every type, field and key that is stored.
func TestProtocolIsWhole(t *testing.T) {
	raw, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	words := []string{
		string(record.StartSchema), string(record.StepSchema), string(record.OwnStartSchema), string(record.OwnStepSchema), string(record.ErrorOutputSchema),
		string(record.SuspendOutputSchema), string(record.AnswerSchema), string(record.PatchSchema), string(node.MetaSchema), layout.ReadmeName, layout.VersionName, layout.ThreadsName, layout.RegistryName, layout.HistoryDir + "/", layout.CasDir + "/", layout.StoreRef,
		layout.AttemptThread + "/", layout.AttemptError, layout.AttemptWork + "/",
		Place{Thread: "<ID>", Of: "<OF>"}.String(), Place{Thread: "<ID>", Of: "<OF>", Detail: true}.String(),
	}
	for folder := range layout.RefFolders() {
		words = append(words, folder)
	}
	for _, typ := range []node.Hash{record.OwnStartSchema, record.OwnStepSchema, record.AnswerSchema, record.PatchSchema} {
		schema, _ := record.Schemas()[typ].Payload.(map[string]any)
		props, _ := schema["properties"].(map[string]any)
		for field := range props {
			words = append(words, "`"+field)
		}
	}
	words = append(words, strings.Fields("head status workflow key work comment pr next since suspended pause attempts limits title by closedBy result used answer forgiven poked deliver")...)
	for _, w := range words {
		if !strings.Contains(doc, w) && !strings.Contains(doc, strings.Replace(w, "`", ", `", 1)) {
			t.Errorf("docs/protocol.md does not name %s", w)
		}
	}
}
