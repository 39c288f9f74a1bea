// Package act holds the tool act, and checks the conditions of the shipped workflow files
// with its evaluator of expressions, which is also that of Gitea's runner.
package act
