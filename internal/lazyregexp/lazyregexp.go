// Package lazyregexp compiles a regular expression when it is first used. Those of
// packages were all compiled at each start of uwf, which took longer than most of
// its commands; a command uses few of them. It never compiles one that is not
// written in the source: that could be wrong, and regexp.Compile says so.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is an expression with the methods of *regexp.Regexp that are in use.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// New is an expression for a package's variable. It panics when it is first used if
// expr does not compile; this package's test finds that before.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

func (r *Regexp) compiledRegexp() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

// Match is that of [regexp.Regexp].
func (r *Regexp) Match(b []byte) bool { return r.compiledRegexp().Match(b) }

// MatchString is that of [regexp.Regexp].
func (r *Regexp) MatchString(s string) bool { return r.compiledRegexp().MatchString(s) }

// FindIndex is that of [regexp.Regexp].
func (r *Regexp) FindIndex(b []byte) []int { return r.compiledRegexp().FindIndex(b) }

// FindString is that of [regexp.Regexp].
func (r *Regexp) FindString(s string) string { return r.compiledRegexp().FindString(s) }

// FindStringSubmatch is that of [regexp.Regexp].
func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.compiledRegexp().FindStringSubmatch(s)
}

// FindAllString is that of [regexp.Regexp].
func (r *Regexp) FindAllString(s string, n int) []string {
	return r.compiledRegexp().FindAllString(s, n)
}

// FindAllStringIndex is that of [regexp.Regexp].
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiledRegexp().FindAllStringIndex(s, n)
}

// FindAllStringSubmatchIndex is that of [regexp.Regexp].
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiledRegexp().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is that of [regexp.Regexp].
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiledRegexp().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is that of [regexp.Regexp].
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiledRegexp().ReplaceAllStringFunc(s, with)
}
