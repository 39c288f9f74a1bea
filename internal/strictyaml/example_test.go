package strictyaml_test

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

func ExampleReader_ReadYAML() {
	const text = "name: two\nroles:\n  dev:\n    goal: g\n   output: o\n"
	var doc yaml.Node
	fmt.Println(yaml.Unmarshal([]byte(text), &doc))
	var r strictyaml.Reader
	r.ReadYAML("x.yaml", text)
	for _, f := range r.Faults {
		fmt.Printf("line %d: %v\n", f.At.Line, f)
	}
	// Output:
	// yaml: line 2: did not find expected key
	// line 5: not valid YAML: did not find expected key; check that keys of one map have the same indentation, and that quotes are closed
}
