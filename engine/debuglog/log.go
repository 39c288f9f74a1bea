// Package debuglog writes what a process does, as it does it, for people who look
// for a mistake later: JSON lines in files of one day each, readable by their owner
// alone. It is no part of any thread and never leaves the machine.
//
// A record is {time, level, tag, msg, pid, …}. The tag is eight characters of
// Crockford's base32, one for each place in the code that writes records, so that a
// line leads to its place even when the words change; a test of this package keeps
// them unique.
//
// Nothing is written that was not searched for secrets, and nothing that goes wrong
// here can make a command fail: then less is written.
package debuglog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
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
	slog   *slog.Logger
	red    *atomic.Pointer[Redactor]
	now    func() time.Time
	thread atomic.Pointer[string]
}

// New makes a Logger. Until it has a Redactor it writes no text of anybody.
func New(o Options) *Logger {
	if o.Out == nil {
		return nil
	}
	red := &atomic.Pointer[Redactor]{}
	h := &handler{out: o.Out, level: o.Level, red: red, pid: o.PID}
	return &Logger{slog: slog.New(h), red: red, now: o.Now}
}

// Redact gives the Logger what it needs to write texts.
func (l *Logger) Redact(r Redactor) {
	if l != nil && l.slog != nil && r != nil {
		l.red.Store(&r)
	}
}

// About names the thread, by its valid id, that this process works on: records that name none are
// about it from then on.
func (l *Logger) About(thread string) {
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

// Failed writes a record about something that went wrong, or one of Info where err
// is nil.
func (l *Logger) Failed(err error, tag, msg string, attrs ...slog.Attr) {
	if err == nil {
		l.writeLine(slog.LevelInfo, tag, msg, attrs)
		return
	}
	l.writeLine(slog.LevelWarn, tag, msg, append(slices.Clone(attrs), slog.String("error", err.Error())))
}

func (l *Logger) writeLine(level slog.Level, tag, msg string, attrs []slog.Attr) {
	if l == nil || l.slog == nil || !l.slog.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(l.now(), level, msg, 0)
	r.AddAttrs(slog.String(tagKey, tag))
	named := slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == threadKey })
	if thread := l.thread.Load(); thread != nil && !named {
		r.AddAttrs(slog.Any(threadKey, Own(*thread)))
	}
	r.AddAttrs(attrs...)
	// What goes wrong with a record must not go on to the command.
	_ = l.slog.Handler().Handle(context.Background(), r)
}

// Own is a text of this program's own: a command's name, a thread's id. It is not
// searched for secrets, so nothing that anybody wrote may be one.
type Own string

// Took is how long something took, as an attribute in milliseconds.
func Took(d time.Duration) slog.Attr {
	return slog.Float64("ms", float64(d.Microseconds())/1000)
}

const (
	tagKey    = "tag"
	threadKey = "thread"
)

// The bounds of one record: a line must stay short enough to be written at once.
const (
	maxText  = 2 << 10 // bytes of one text
	maxAttrs = 40
)

// handler writes records as JSON lines. It implements slog.Handler.
type handler struct {
	out   io.Writer
	level slog.Level
	red   *atomic.Pointer[Redactor]
	pid   int
	attrs []slog.Attr
	group string
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		out.attrs = append(out.attrs, a)
	}
	return &out
}

// WithGroup implements slog.Handler: keys of a group begin with its name.
func (h *handler) WithGroup(name string) slog.Handler {
	out := *h
	if name != "" {
		out.group += name + "."
	}
	return &out
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		a.Key = h.group + a.Key
		attrs = append(attrs, a)
		return len(attrs) < maxAttrs
	})
	var red Redactor
	if p := h.red.Load(); p != nil {
		red = *p
	}
	line := newLine(red)
	line.addOwn("time", r.Time.UTC().Format("2006-01-02T15:04:05.000Z"))
	line.addOwn("level", strings.ToLower(r.Level.String()))
	i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == tagKey })
	if i >= 0 {
		line.addOwn(tagKey, attrs[i].Value.String())
		attrs = slices.Delete(attrs, i, i+1)
	}
	line.addOwn("msg", r.Message)
	line.addOwn("pid", h.pid)
	for _, a := range attrs {
		line.addAttr(a.Key, a.Value)
	}
	b, err := line.wholeLine()
	if err != nil {
		return err
	}
	_, err = h.out.Write(b)
	return err
}

// line is one record in the making.
type line struct {
	red     Redactor
	b       strings.Builder
	dropped int // texts that could not be searched for secrets
	err     error
}

func newLine(red Redactor) *line { return &line{red: red} }

// addOwn writes a value that is this program's own.
func (l *line) addOwn(key string, v any) {
	k, kerr := json.Marshal(key)
	b, err := json.Marshal(v)
	if err != nil || kerr != nil {
		l.err = fmt.Errorf("write %s: %w", key, err)
		return
	}
	sep := ","
	if l.b.Len() == 0 {
		sep = "{"
	}
	l.b.WriteString(sep)
	l.b.Write(k)
	l.b.WriteByte(':')
	l.b.Write(b)
}

// addAttr writes a value that may come from anywhere: texts only without secrets.
func (l *line) addAttr(key string, v slog.Value) {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindInt64:
		l.addOwn(key, v.Int64())
	case slog.KindUint64:
		l.addOwn(key, v.Uint64())
	case slog.KindBool:
		l.addOwn(key, v.Bool())
	case slog.KindFloat64:
		l.addOwn(key, v.Float64())
	case slog.KindDuration:
		l.addOwn(key, float64(v.Duration().Microseconds())/1000)
	case slog.KindTime:
		l.addOwn(key, v.Time().UTC().Format(time.RFC3339Nano))
	case slog.KindGroup:
		for _, a := range v.Group() {
			l.addAttr(key+"."+a.Key, a.Value)
		}
	default:
		l.addText(key, v)
	}
}

func (l *line) addText(key string, v slog.Value) {
	if own, ok := v.Any().(Own); ok {
		l.addOwn(key, string(own))
		return
	}
	if list, ok := v.Any().([]string); ok {
		out := []string{}
		for _, s := range list[:min(len(list), maxAttrs)] {
			clean, ok := l.cleanText(s)
			if !ok {
				return
			}
			out = append(out, clean)
		}
		l.addOwn(key, out)
		return
	}
	if clean, ok := l.cleanText(v.String()); ok {
		l.addOwn(key, clean)
	}
}

// cleanText is a text without secrets, cut to size; ok is false where that can't be
// told. It is cut afterwards: half a secret would not be found.
func (l *line) cleanText(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	if l.red == nil {
		l.dropped++
		return "", false
	}
	v, _, err := l.red.Value(s)
	out, isText := v.(string)
	if err != nil || !isText {
		l.dropped++
		return "", false
	}
	if len(out) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(out[cut]) {
			cut--
		}
		out = out[:cut] + "…"
	}
	return out, true
}

// wholeLine is the whole line.
func (l *line) wholeLine() ([]byte, error) {
	if l.dropped > 0 {
		l.addOwn("unredacted", l.dropped)
	}
	return []byte(l.b.String() + "}\n"), l.err
}
