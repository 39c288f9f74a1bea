// Package record defines the payloads that uwf stores: StartNode, StepNode,
// workflow, outputs and agents' details, each with its schema and its Go struct.
// It is pure, and knows nothing of where nodes are kept.
//
// The package is public. Kept stable are the payloads and the hashes of their schemas: a
// schema that changes is another one. Functions and types may change until a first release.
package record
