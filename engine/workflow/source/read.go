package source

import "github.com/united-workforce/uwf/internal/strictyaml"

// Read reads a YAML file and what it includes. Name is the file, slash-separated,
// for messages. Include returns the content of a file for !include, by its
// slash-separated name relative to the folder of name, which is lexically inside
// it; nil: nothing can be included. What is wrong is added to problems; what could not be
// read is of kind Bad.
func Read(problems *Problems, name string, data []byte, include func(name string) ([]byte, error)) *strictyaml.Node {
	r := &strictyaml.Reader{Aliases: true, Include: include}
	r.Report = func(f strictyaml.Fault) { problems.Add(f.At, f.Len, f.Fix, "%s", f.Message) }
	return r.ReadYAML(name, string(data))
}
