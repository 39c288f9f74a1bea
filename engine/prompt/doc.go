// Package prompt writes what an agent is told: its deliverable, its role, the
// task, what happened before, and what to do now. It is pure, and the same input
// gives the same text; the random word around text from outside is an input. It
// never calls a model and never reads the answer (that is package extract).
package prompt
