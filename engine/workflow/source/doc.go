// Package source reads YAML and JSON files to values that know their place, and
// reports problems there. It reads scalars by YAML 1.2, and refuses what makes a
// file read differently from how it looks: anchors, aliases, merge keys, tags,
// duplicate keys. It never opens a file itself and knows nothing of workflows.
package source
