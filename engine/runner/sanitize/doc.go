// Package sanitize makes text from outside fit to be read by an agent, and text from
// agents fit to be posted. It is pure.
package sanitize
