package extract

import (
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// parseFields reads a block as JSON when it begins like an object, else as YAML. A block
// with nothing in it is an empty value. Above are the lines of the answer before it.
func parseFields(text string, above int) (*strictyaml.Node, *strictyaml.Fault) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		n, rest, fault := parseJSON(text, above)
		if fault == nil && strings.TrimSpace(rest) == "" || fault != nil && fault.Final {
			return n, fault
		}
		// A flow mapping of YAML may begin in the same way.
		if n, yamlFault := parseYAML(text, above); yamlFault == nil || fault == nil {
			return n, yamlFault
		}
		return nil, fault
	}
	return parseYAML(text, above)
}

// parseYAML reads a YAML document.
func parseYAML(text string, above int) (*strictyaml.Node, *strictyaml.Fault) {
	r := &strictyaml.Reader{Above: above}
	return r.ReadYAML("", text), firstFault(r)
}

// parseJSON reads one JSON value at the beginning of text and returns what stands
// behind it.
func parseJSON(text string, above int) (*strictyaml.Node, string, *strictyaml.Fault) {
	r := &strictyaml.Reader{Above: above}
	n, rest := r.ReadJSONAtBegin(text)
	return n, rest, firstFault(r)
}

func firstFault(r *strictyaml.Reader) *strictyaml.Fault {
	if len(r.Faults) == 0 {
		return nil
	}
	return &r.Faults[0]
}

// parseText parses a JSON value of one kind that was put into a text.
func parseText(text string, kind strictyaml.Kind) (*strictyaml.Node, bool) {
	n, rest, fault := parseJSON(text, 0)
	return n, fault == nil && n.Kind == kind && strings.TrimSpace(rest) == ""
}
