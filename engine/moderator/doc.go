// Package moderator decides what a thread does next: which role runs, with what
// words and where, or that the thread ends or waits. It is pure: it sees a
// compiled workflow and the outputs so far, and never a store, a clock or an
// agent.
package moderator
