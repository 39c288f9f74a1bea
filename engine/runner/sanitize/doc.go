// Package sanitize makes text from outside fit to be read by an agent, and text from
// agents fit to be posted. It is pure.
//
// A person who looks at an issue sees less than an agent that reads its source:
// comments, attributes, characters without a width. Incoming takes that away, and
// leaves what is seen. In the other direction an agent can do with its text what a
// person may do with a comment: mention people, close issues, give commands to bots,
// leave traces in other repositories. Outgoing takes that from it.
//
// Code is left alone where it certainly is code to the forge too. Where Incoming is
// not certain, it is text to it; Outgoing writes code blocks anew, so that it is.
package sanitize
