package debuglog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Record is one line of a log, as it was written.
type Record struct {
	Time   time.Time
	Level  string
	Tag    string
	Msg    string
	PID    int
	Thread string
	Rest   []Field // what else the record holds, in its order
}

// Field is one value of a record.
type Field struct {
	Key   string
	Value any // string, json.Number, bool, []any
}

// Filter chooses records. Empty fields choose all.
type Filter struct {
	Since  time.Time
	Thread string
	PID    int
	Tag    string
}

func (f Filter) takesRecord(r Record) bool {
	return !r.Time.Before(f.Since) && (f.Thread == "" || r.Thread == f.Thread) &&
		(f.PID == 0 || r.PID == f.PID) && (f.Tag == "" || strings.EqualFold(r.Tag, f.Tag))
}

// Reader reads the records of a folder in the order of its files, and goes on
// where it stopped.
type Reader struct {
	dir    string
	filter Filter
	done   map[string]int64 // bytes read of each file
	// Unreadable counts lines that are no records.
	Unreadable int
}

// NewReader reads a folder's records.
func NewReader(dir string, filter Filter) *Reader {
	return &Reader{dir: dir, filter: filter, done: map[string]int64{}}
}

// Next gives all records since the last call. A line that is not whole yet is left
// for the next one.
func (r *Reader) Next(visit func(Record) error) error {
	files, err := List(r.dir)
	if err != nil {
		return err
	}
	first := ""
	if !r.filter.Since.IsZero() {
		first = r.filter.Since.UTC().Format(time.DateOnly)
	}
	for _, x := range files {
		if x.Day < first || x.Size == r.done[x.Name] {
			continue
		}
		if err := r.readFile(x.Name, visit); err != nil {
			return err
		}
	}
	return nil
}

// maxLine is the longest line that is read: far more than is ever written.
const maxLine = 1 << 20

func (r *Reader) readFile(name string, visit func(Record) error) (err error) {
	file, err := os.Open(filepath.Join(r.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // cleaned away
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(r.done[name], io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, n, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.done[name] += int64(n)
		rec, ok := parseLine(line)
		if !ok {
			r.Unreadable++
			continue
		}
		if r.filter.takesRecord(rec) {
			if err := visit(rec); err != nil {
				return err
			}
		}
	}
}

// readLine reads a whole line and says how many bytes it has; what is too long
// comes as nothing.
func readLine(in *bufio.Reader) (line []byte, n int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		n += len(part)
		if len(line) < maxLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, n, err
		case n > maxLine:
			return nil, n, nil
		}
		return line, n, nil
	}
}

// parseLine reads a line.
func parseLine(line []byte) (Record, bool) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var r Record
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return r, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return r, false
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return r, false
		}
		name, _ := key.(string)
		r.putField(name, v)
	}
	if _, err := dec.Token(); err != nil {
		return r, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, false // more than one on a line: something went wrong with both
	}
	return r, !r.Time.IsZero()
}

func (r *Record) putField(key string, v any) {
	texts := map[string]*string{"level": &r.Level, tagKey: &r.Tag, "msg": &r.Msg, threadKey: &r.Thread}
	s, _ := v.(string)
	switch {
	case key == "time":
		r.Time, _ = time.Parse(time.RFC3339Nano, s) // zero: this is no record
	case key == "pid":
		n, _ := v.(json.Number)
		r.PID, _ = strconv.Atoi(n.String())
	case texts[key] != nil:
		*texts[key] = s
	default:
		r.Rest = append(r.Rest, Field{key, v})
	}
}
