package ocas

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Names of the variables that newer stores keep their lists in.
const (
	threadVar   = "@uwf/thread/"
	historyVar  = "@uwf/history/"
	registryVar = "@uwf/registry/"
)

// rank says which list counts where several name one thread or workflow: the later one here.
// The predecessor moved the files into variables whenever it started, wrote each over what
// stood there, threads.yaml before history.jsonl before the variables of history, and renamed
// the files (packages/cli/src/store.ts of united-workforce: createUwfStore, migrate…). So a
// file that still has its name is newer than the variables.
type rank int

const (
	fromVars rank = iota // or nobody says it
	fromFiles
	fromHistory
	fromHistoryVars
)

// statuses translates those of the TypeScript uwf.
var statuses = map[string]string{
	"": Active, "idle": Active, "active": Active, "running": Active, "suspended": Suspended,
	"completed": Ended, "ended": Ended, "end": Ended, "cancelled": Cancelled, Untold: Untold,
}

// What a state branch takes of a suspended thread, in bytes.
const (
	maxRole   = 200
	maxReason = 16 << 10
)

// Readings of a store that is in use.
const (
	maxReadings  = 200
	readingPause = 5 * time.Millisecond
	tornReadings = 50 // equal ones after which a torn WAL is damaged, and not being written
)

// addLists reads the lists of a folder.
func (s *Source) addLists(at *place, fsys fs.FS) {
	names := []string{"_vars.jsonl", "vars/_vars.jsonl", "threads.yaml", "history.jsonl", "workflows.yaml", "registry.yaml"}
	for _, d := range databaseForms() {
		names = append(names, lists.Map(databaseParts(), func(suffix string) string { return d.file + suffix })...)
	}
	files, err := readSteady(fsys, names)
	if err != nil {
		s.addProblem(at.name, 0, err)
	}
	read := func(name string, list func(file string, b []byte)) bool {
		f, there := files[name]
		at.noteFound(isList, name, there)
		file := path.Join(at.name, name)
		switch {
		case !there || err != nil:
		case f.err != nil:
			s.addProblem(file, 0, f.err)
		default:
			list(file, f.data)
		}
		return there
	}
	inDatabase := false
	for _, d := range databaseForms() {
		there := read(d.file, func(file string, _ []byte) { s.readDatabase(file, d, files) })
		inDatabase = inDatabase || there
	}
	if !inDatabase { // else they were moved into the database, and are not kept up
		read("_vars.jsonl", s.readVars)
		read("vars/_vars.jsonl", s.readVars)
	}
	read("threads.yaml", s.readThreads)
	read("history.jsonl", s.readHistory)
	read("workflows.yaml", s.readWorkflows)
	read("registry.yaml", s.readWorkflows)
}

// listFile is a file as it was read.
type listFile struct {
	data []byte
	err  error
}

// readSteady reads files of which the predecessor may be writing some, those that there are,
// until two readings in a row are equal: between the two nothing was written, so they belong
// together.
func readSteady(fsys fs.FS, names []string) (map[string]listFile, error) {
	var last map[string]listFile
	same := 0
	for range maxReadings {
		now := map[string]listFile{}
		for _, name := range names {
			if b, err := readFile(fsys, name, maxList); !errors.Is(err, fs.ErrNotExist) {
				now[name] = listFile{b, err}
			}
		}
		if last == nil || !maps.EqualFunc(last, now, equalFiles) {
			same = 0
		} else if same++; same >= tornReadings || !isTorn(now) {
			return now, nil
		}
		if last != nil {
			time.Sleep(readingPause)
		}
		last = now
	}
	return last, fmt.Errorf("its lists were written to all the time while they were read, %d times; stop what runs on it and run this again", maxReadings)
}

// isTorn reports whether a WAL ends in a commit that is not whole: as a rule its writer is just
// at it.
func isTorn(files map[string]listFile) bool {
	for name, f := range files {
		if strings.HasSuffix(name, "-wal") && checkWAL(f.data) != nil {
			return true
		}
	}
	return false
}

func equalFiles(a, b listFile) bool {
	return bytes.Equal(a.data, b.data) && fmt.Sprint(a.err) == fmt.Sprint(b.err)
}

// addThread takes a thread in.
func (s *Source) addThread(from rank, id, head string, fields map[string]string) error {
	t := Thread{ID: statefile.ThreadID(id), Head: node.Hash(head), Role: text.Cut(fields["suspendedRole"], maxRole), Reason: text.Cut(fields["suspendMessage"], maxReason)}
	if !t.ID.Valid() || !t.Head.Valid() {
		return fmt.Errorf("thread %.40q at %.40q: no thread id, or no hash", id, head)
	}
	if t.Status = statuses[fields["status"]]; t.Status == "" {
		return fmt.Errorf("thread %s: unknown status %.40q", id, fields["status"])
	}
	if t.Status == Active && t.Role != "" {
		t.Status = Suspended
	}
	if at := fields["completedAt"]; at != "" {
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil || ms < 0 || ms > 1<<53 {
			return fmt.Errorf("thread %s: completedAt: %.40q is no time in milliseconds", id, at)
		}
		t.CompletedAt = ms
	}
	if from >= s.ranks[t.ID] {
		s.threads[t.ID], s.ranks[t.ID] = t, from
	}
	return nil
}

// workflow is a registered name. The lists give the versions in no order.
type workflow struct {
	hash     node.Hash
	from     rank
	versions map[node.Hash]int64 // when each was registered, milliseconds; 0: unknown
}

// sortVersions is the workflow as the store has it, its former versions newest first.
func (f workflow) sortVersions() statefile.RegistryEntry {
	e := statefile.RegistryEntry{Hash: f.hash, Timestamp: f.versions[f.hash]}
	for h, at := range f.versions {
		if h != f.hash {
			e.History = append(e.History, statefile.RegistryVersion{Hash: h, Timestamp: at})
		}
	}
	slices.SortFunc(e.History, func(a, b statefile.RegistryVersion) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(a.Hash, b.Hash))
	})
	return e
}

// addWorkflow takes a registered name in, with the versions that the list knows.
func (s *Source) addWorkflow(from rank, name string, e statefile.RegistryEntry) error {
	if !e.Hash.Valid() {
		return fmt.Errorf("workflow %.40q: %.40q is no hash", name, e.Hash)
	}
	all := len(e.History)
	e.History = slices.DeleteFunc(e.History, func(v statefile.RegistryVersion) bool { return !v.Hash.Valid() || v.Timestamp < 0 })
	if _, err := statefile.NewRegistry().With(map[string]*statefile.RegistryEntry{name: &e}); err != nil {
		return fmt.Errorf("workflow %.40q: %w", name, err)
	}
	f, there := s.flows[name]
	if !there {
		f.versions = map[node.Hash]int64{}
	}
	if !there || from >= f.from {
		f.hash, f.from = e.Hash, from
	}
	for _, v := range append(e.History, statefile.RegistryVersion{Hash: e.Hash, Timestamp: e.Timestamp}) {
		f.versions[v.Hash] = max(f.versions[v.Hash], v.Timestamp)
	}
	s.flows[name] = f
	if len(e.History) < all {
		return fmt.Errorf("workflow %.40q: a former version has no hash, or a time before 1970", name)
	}
	return nil
}

// readThreads reads threads.yaml: id: head, or id: {head, status, suspendedRole,
// suspendMessage, completedAt}.
func (s *Source) readThreads(file string, b []byte) {
	s.eachPair(file, b, func(key string, v *yaml.Node) error {
		if v.Kind == yaml.ScalarNode {
			return s.addThread(fromFiles, key, v.Value, nil)
		}
		fields := map[string]string{}
		if v.Kind != yaml.MappingNode {
			return fmt.Errorf("thread %.40q: neither a hash nor a mapping", key)
		}
		for i := 0; i+1 < len(v.Content); i += 2 {
			if val := v.Content[i+1]; val.Kind == yaml.ScalarNode && val.Tag != "!!null" {
				fields[v.Content[i].Value] = val.Value
			}
		}
		return s.addThread(fromFiles, key, fields["head"], fields)
	})
}

// readWorkflows reads workflows.yaml and registry.yaml: name: hash, or name: {hash,
// timestamp, history: [{hash, timestamp}]}.
func (s *Source) readWorkflows(file string, b []byte) {
	type version struct {
		Hash      node.Hash `yaml:"hash"`
		Timestamp int64     `yaml:"timestamp"`
	}
	s.eachPair(file, b, func(key string, v *yaml.Node) error {
		if v.Kind == yaml.ScalarNode {
			return s.addWorkflow(fromFiles, key, statefile.RegistryEntry{Hash: node.Hash(v.Value)})
		}
		var long struct {
			version `yaml:",inline"`
			History []version `yaml:"history"`
		}
		if err := v.Decode(&long); err != nil {
			return fmt.Errorf("workflow %.40q: %w", key, err)
		}
		e := statefile.RegistryEntry{Hash: long.Hash, Timestamp: long.Timestamp}
		for _, h := range long.History {
			e.History = append(e.History, statefile.RegistryVersion(h))
		}
		return s.addWorkflow(fromFiles, key, e)
	})
}

// eachPair reads a YAML mapping. Of one that can't be read as a whole, each entry that begins
// at the left margin is read for itself: so the predecessor wrote them.
func (s *Source) eachPair(file string, b []byte, visit func(key string, v *yaml.Node) error) {
	if root, err := parseYAML(b); err == nil {
		s.visitPairs(file, 0, root, visit)
		return
	}
	at, begin, entry := 0, 0, []byte{}
	readEntry := func() {
		root, err := parseYAML(entry)
		if err != nil {
			s.addProblem(file, begin+1, err)
		}
		s.visitPairs(file, begin, root, visit)
	}
	for line := range bytes.Lines(b) {
		if !bytes.ContainsRune([]byte(" \t\r\n#"), rune(line[0])) {
			readEntry()
			begin, entry = at, nil
		}
		entry = append(entry, line...)
		at++
	}
	readEntry()
}

// visitPairs reads the entries of a mapping, which begins after line base.
func (s *Source) visitPairs(file string, base int, root *yaml.Node, visit func(key string, v *yaml.Node) error) {
	if root == nil || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		s.addProblem(file, base+root.Line, errors.New("no mapping"))
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := visit(root.Content[i].Value, root.Content[i+1]); err != nil {
			s.addProblem(file, base+root.Content[i].Line, err)
		}
	}
}

// parseYAML reads a document; nil: it is empty.
func parseYAML(b []byte) (*yaml.Node, error) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(b)).Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

// readHistory reads history.jsonl: {thread, workflow, head, completedAt, reason}.
func (s *Source) readHistory(file string, b []byte) {
	s.eachLine(file, b, func(_ int, m map[string]any) error {
		id, _ := m["thread"].(string)
		head, _ := m["head"].(string)
		reason, _ := m["reason"].(string)
		fields := map[string]string{"status": cmp.Or(reason, Untold)}
		if at, ok := m["completedAt"].(int64); ok {
			fields["completedAt"] = strconv.FormatInt(at, 10)
		}
		return s.addThread(fromHistory, id, head, fields)
	})
}

// variable is one of a bundle or a store: a name for a node, once for each schema.
type variable struct {
	line                int
	name, schema, value string
	created, updated    int64 // milliseconds
	tags                map[string]any
	former              []statefile.RegistryVersion
}

// readVars reads the variables of a bundle or a store, {name, schema, value, created, updated,
// tags, history: [{value, setAt}], …}, the later line over the earlier one; {__op: "remove"}
// takes one back.
func (s *Source) readVars(file string, b []byte) {
	vars := map[[2]string]variable{}
	s.eachLine(file, b, func(line int, m map[string]any) error {
		v := variable{line: line}
		v.name, _ = m["name"].(string)
		v.schema, _ = m["schema"].(string)
		v.value, _ = m["value"].(string)
		v.created, _ = m["created"].(int64)
		v.updated, _ = m["updated"].(int64)
		v.tags, _ = m["tags"].(map[string]any)
		former, _ := m["history"].([]any)
		for _, f := range former {
			f, _ := f.(map[string]any)
			value, _ := f["value"].(string)
			at, _ := f["setAt"].(int64)
			v.former = append(v.former, statefile.RegistryVersion{Hash: node.Hash(value), Timestamp: at})
		}
		if op, _ := m["__op"].(string); op == "remove" {
			maps.DeleteFunc(vars, func(k [2]string, _ variable) bool { return k[0] == v.name && (v.schema == "" || k[1] == v.schema) })
			return nil
		}
		vars[[2]string{v.name, v.schema}] = v
		return nil
	})
	s.addVariables(file, slices.Collect(maps.Values(vars)))
}

// addVariables takes variables in. Of several of one name the one that was made last counts,
// as it did for the predecessor (VarStore.list sorts by created, loadAllThreads and
// loadWorkflowRegistry keep the last).
func (s *Source) addVariables(file string, vars []variable) {
	slices.SortFunc(vars, func(a, b variable) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.line, b.line), strings.Compare(a.name+a.schema, b.name+b.schema))
	})
	for _, v := range vars {
		if err := s.addVariable(v); err != nil {
			s.addProblem(file, v.line, err)
		}
	}
}

func (s *Source) addVariable(v variable) error {
	if name, ok := strings.CutPrefix(v.name, registryVar); ok {
		return s.addWorkflow(fromVars, name, statefile.RegistryEntry{Hash: node.Hash(v.value), Timestamp: v.updated, History: v.former})
	}
	fields, from := map[string]string{}, fromVars
	for k, val := range v.tags {
		if text, ok := val.(string); ok {
			fields[k] = text
		}
	}
	id, ok := strings.CutPrefix(v.name, threadVar)
	if !ok {
		if id, ok = strings.CutPrefix(v.name, historyVar); !ok {
			return nil
		}
		from, fields["status"] = fromHistoryVars, cmp.Or(fields["reason"], "completed")
	}
	return s.addThread(from, id, v.value, fields)
}

// eachLine reads JSON lines.
func (s *Source) eachLine(file string, b []byte, visit func(int, map[string]any) error) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, err := node.ParseJSON(line)
		if m, ok := v.(map[string]any); err == nil && !ok {
			err = errors.New("no object")
		} else if err == nil {
			err = visit(n, m)
		}
		if err != nil {
			s.addProblem(file, n, err)
		}
	}
}
