// Package record defines the payloads that uwf stores: StartNode, StepNode,
// workflow, outputs and agents' details, each with its schema and its Go struct.
// It is pure, and knows nothing of where nodes are kept.
package record
