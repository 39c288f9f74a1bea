// Package liquid renders the prompts and locations on the edges of workflows of
// version 1 from an agent's output. The language is Liquid without tags that read
// other files, and without filters that read a clock. It never does I/O, and
// no template, whatever the output holds, renders without end.
package liquid
