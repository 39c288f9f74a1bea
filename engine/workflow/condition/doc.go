// Package condition decides JSONata expressions over a thread: the conditions on
// the edges of the older workflow dialects. Expressions see {start, steps} and the
// functions $first(role) and $last(role); they never see a clock, randomness or
// anything else that would decide differently when asked again. It never does I/O,
// and no expression runs without end.
package condition
