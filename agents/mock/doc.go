// Package mock is an agent without a model: it plays a script. It drives any
// workflow in tests and demos, and misbehaves on demand. A script is YAML, a list of entries with
// conditions: the first entry whose conditions hold is played. examples/mock.yaml has every key,
// Schema says what each is, and docs/mock.md is for people.
//
// A script of the TypeScript uwf has nothing but roles and outputs, and the same role several
// times. It is played in order: the first entry is the thread's first step, and so on; an
// entry of another role than the one whose turn it is, or none, fails the step. Any script
// is played so as --mock-data, which is how that uwf was given one.
//
// An output may be a question to a person: the status that the graph has for it, or
// `$status: $SUSPEND` with a reason where the workflow lets every role ask.
//
// It never calls a model itself and never reads anything but its script and its task.
package mock
