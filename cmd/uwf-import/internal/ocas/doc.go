// Package ocas reads what the TypeScript uwf leaves on a disk, so that its threads
// and workflows can be moved over: the node files of an ocas store (<HASH>.bin, each
// a CBOR map of type, payload and timestamp), the bundles of `ocas export`, and the
// lists: the variables in the store's SQLite database or in _vars.jsonl, and
// threads.yaml, workflows.yaml, registry.yaml and history.jsonl of its storage root.
//
// It takes every byte for hostile: no node is given out whose content does not hash
// to its name and fit its schema. What is damaged is a Problem and leaves out what
// depends on it alone. It never writes where it reads.
package ocas
