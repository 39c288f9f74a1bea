package statefile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// MaxRegistryFile is the largest registry.yaml that is read, in bytes.
const MaxRegistryFile = 4 << 20

const (
	maxName     = 200
	maxVersions = 10_000
)

// Registry is the content of registry.yaml: workflow names.
type Registry = File[string, RegistryEntry]

var registryKind = &fileKind[string, RegistryEntry]{
	maxBytes: MaxRegistryFile, checkKey: checkName, writeKey: writeWord, fields: registryFields,
	settle: func(e *RegistryEntry) {
		if len(e.History) == 0 {
			e.History = nil
		}
	},
	clone: func(e RegistryEntry) RegistryEntry {
		e.History = slices.Clone(e.History)
		return e
	},
}

// NewRegistry returns a file without entries.
func NewRegistry() *Registry { return &Registry{is: registryKind} }

// ParseRegistry reads registry.yaml. The error names the line and matches
// ErrMalformed.
func ParseRegistry(data []byte) (*Registry, error) { return registryKind.parseFile(data) }

// checkName: a name is shown in terminals and typed by people.
func checkName(s string) error {
	if s == "" || !textOK(s, maxName) || strings.TrimSpace(s) != s || strings.ContainsFunc(s, mustEscape) {
		return fmt.Errorf("%.60q is no name", s)
	}
	return nil
}

var registryFields = fields[RegistryEntry]{
	scalarField("hash", func(e *RegistryEntry) *node.Hash { return &e.Hash }, readHash, writeHash),
	scalarField("timestamp", func(e *RegistryEntry) *int64 { return &e.Timestamp }, numberUpTo[int64](math.MaxInt64), writeNonzero),
	listField("history", func(e *RegistryEntry) *[]RegistryVersion { return &e.History }, maxVersions, "versions", readVersion, versionFields.writeBlock),
}

var versionFields = fields[RegistryVersion]{
	scalarField("history.hash", func(v *RegistryVersion) *node.Hash { return &v.Hash }, readHash, writeHash),
	scalarField("history.timestamp", func(v *RegistryVersion) *int64 { return &v.Timestamp }, numberUpTo[int64](math.MaxInt64), writeNonzero),
}

func readVersion(v value, name string) (out RegistryVersion, err error) {
	if err := versionFields.readMapping(&out, v, name); err != nil {
		return out, err
	}
	if out.Hash == "" {
		return out, newMalformedError(v.line, "%s: no hash", name)
	}
	return out, nil
}
