// Package graph draws workflows: as Mermaid for web pages, and as text for
// a terminal, each with the path that a thread has taken, if there is one. What it
// draws comes from definitions and agents, so every name and status is treated as
// hostile. It does no I/O.
package graph
