// Package ocas reads what the TypeScript uwf leaves on a disk, so that its threads
// and workflows can be moved over: the node files of an ocas store (<HASH>.bin, each
// a CBOR map of type, payload and timestamp), the bundles of `ocas export`, and the
// lists threads.yaml, workflows.yaml and history.jsonl of its storage root.
//
// It takes every byte for hostile: no node is given out whose content does not hash
// to its name and fit its schema. It never writes, and reads no SQLite: of stores
// that have become one, `ocas export` makes a bundle.
package ocas
