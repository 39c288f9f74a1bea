// Package debuglog writes what a process does, as it does it, for people who look
// for a mistake later: JSON lines in files of one day each, readable by their owner
// alone. It is no part of any thread and never leaves the machine.
//
// A record is {time, level, msg, pid, tag, …}, as slog writes it. The tag is eight
// characters of Crockford's base32, one for each place in the code that writes records, so
// that a line leads to its place even when the words change; a test of this package keeps
// them unique.
//
// Nothing is written that was not searched for secrets, and nothing that goes wrong
// here can make a command fail: then less is written.
package debuglog

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/internal/text"
)

// Redactor takes secrets out of a text.
type Redactor interface {
	Value(v any) (any, int, error)
}

// Options of a Logger. Out may be nil: nothing is written then.
type Options struct {
	Out   io.Writer // gets one whole line with each call
	Level slog.Level
	Now   func() time.Time
	PID   int
}

// Logger writes records. The zero value and nil write none. It is safe for
// concurrent use.
type Logger struct {
	out    slog.Handler
	now    func() time.Time
	red    atomic.Pointer[Redactor]
	thread atomic.Pointer[string]
}

// New makes a Logger. Until it has a Redactor it writes no text of anybody.
func New(o Options) *Logger {
	if o.Out == nil {
		return nil
	}
	h := slog.NewJSONHandler(o.Out, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: formatAttr})
	return &Logger{out: h.WithAttrs([]slog.Attr{slog.Int("pid", o.PID)}), now: o.Now}
}

// formatAttr writes times in UTC, to a millisecond, and levels in small letters.
func formatAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time:
		a.Value = slog.StringValue(v.UTC().Format("2006-01-02T15:04:05.000Z"))
	case slog.Level:
		a.Value = slog.StringValue(strings.ToLower(v.String()))
	}
	return a
}

// Redact gives the Logger what it needs to write texts.
func (l *Logger) Redact(r Redactor) {
	if l != nil && r != nil {
		l.red.Store(&r)
	}
}

// SetThread names the thread, by its valid id, that this process works on: records that name none are
// about it from then on.
func (l *Logger) SetThread(thread string) {
	if l != nil && thread != "" {
		l.thread.Store(&thread)
	}
}

// Info writes a record about something worth knowing in every run. The tag must be
// a literal: eight characters that no other call has.
func (l *Logger) Info(tag, msg string, attrs ...slog.Attr) {
	l.writeLine(slog.LevelInfo, tag, msg, attrs)
}

// Debug writes a record about details.
func (l *Logger) Debug(tag, msg string, attrs ...slog.Attr) {
	l.writeLine(slog.LevelDebug, tag, msg, attrs)
}

// LogOutcome writes a record about something that went wrong, or one of Info where err
// is nil.
func (l *Logger) LogOutcome(err error, tag, msg string, attrs ...slog.Attr) {
	if err == nil {
		l.writeLine(slog.LevelInfo, tag, msg, attrs)
		return
	}
	l.writeLine(slog.LevelWarn, tag, msg, append(slices.Clone(attrs), slog.String("error", err.Error())))
}

func (l *Logger) writeLine(level slog.Level, tag, msg string, attrs []slog.Attr) {
	if l == nil || l.out == nil || !l.out.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(l.now(), level, msg, 0)
	r.AddAttrs(slog.String(tagKey, tag))
	named := slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == threadKey })
	if thread := l.thread.Load(); thread != nil && !named {
		r.AddAttrs(slog.String(threadKey, *thread))
	}
	dropped := 0
	for _, a := range attrs {
		if v, ok := l.cleanValue(a.Value.Resolve()); ok {
			r.AddAttrs(slog.Attr{Key: a.Key, Value: v})
		} else {
			dropped++
		}
	}
	if dropped > 0 {
		r.AddAttrs(slog.Int("unredacted", dropped))
	}
	// What goes wrong with a record must not go on to the command.
	_ = l.out.Handle(context.Background(), r)
}

// OwnText is a text of this program's own: a command's name, a thread's id. It is not
// searched for secrets, so nothing that anybody wrote may be one.
type OwnText string

// DurationAttr is how long something took, as an attribute in milliseconds.
func DurationAttr(d time.Duration) slog.Attr {
	return slog.Float64("ms", float64(d.Microseconds())/1000)
}

const (
	tagKey    = "tag"
	threadKey = "thread"
)

// The bounds of one record: a line must stay short enough to be written at once.
const (
	maxText = 2 << 10 // bytes of one text
	maxList = 40      // texts of one list
)

// cleanValue is a value that may come from anywhere, with texts without secrets; ok is
// false where that can't be told.
func (l *Logger) cleanValue(v slog.Value) (clean slog.Value, ok bool) {
	switch v.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindBool, slog.KindFloat64:
		return v, true
	case slog.KindDuration:
		return DurationAttr(v.Duration()).Value, true
	}
	switch x := v.Any().(type) {
	case OwnText:
		return slog.StringValue(string(x)), true
	case []string:
		list := []string{}
		for _, s := range x[:min(len(x), maxList)] {
			text, ok := l.cleanText(s)
			if !ok {
				return v, false
			}
			list = append(list, text)
		}
		return slog.AnyValue(list), true
	}
	s, ok := l.cleanText(v.String())
	return slog.StringValue(s), ok
}

// cleanText is a text without secrets, cut to size; ok is false where that can't be
// told. It is cut afterwards: half a secret would not be found.
func (l *Logger) cleanText(s string) (clean string, ok bool) {
	red := l.red.Load()
	if s == "" || red == nil {
		return "", s == ""
	}
	v, _, err := (*red).Value(s)
	out, ok := v.(string)
	return text.Cut(out, maxText), ok && err == nil
}
