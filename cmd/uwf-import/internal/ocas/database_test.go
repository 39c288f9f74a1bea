package ocas_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncruces/go-sqlite3"

	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/ocastest"
)

// schemaOfStore is what ocas makes (the .schema of the stores below testdata/stores).
const schemaOfStore = `
CREATE TABLE vars (name TEXT NOT NULL, schema TEXT NOT NULL, value TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL,
	tags TEXT NOT NULL DEFAULT '{}', labels TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (name, schema));
CREATE TABLE var_history (name TEXT NOT NULL, schema TEXT NOT NULL, value TEXT NOT NULL, position INTEGER NOT NULL, set_at INTEGER NOT NULL,
	PRIMARY KEY (name, schema, position), FOREIGN KEY (name, schema) REFERENCES vars(name, schema) ON DELETE CASCADE);
CREATE INDEX idx_vars_name ON vars(name);
CREATE TABLE tags (target TEXT NOT NULL, key TEXT NOT NULL, value TEXT, created INTEGER NOT NULL, PRIMARY KEY (target, key));`

const (
	hashA = "AAAAAAAAAAAAA"
	hashB = "BBBBBBBBBBBBB"
	hashC = "CCCCCCCCCCCCC"
)

// writer has a database open, as the predecessor would.
type writer struct {
	*testing.T
	dir string
	db  *sqlite3.Conn
}

// openStore makes the database of a store. mode is its journal_mode.
func openStore(t *testing.T, mode string) *writer {
	t.Helper()
	w := &writer{T: t, dir: t.TempDir()}
	var err error
	if err = os.Mkdir(filepath.Join(w.dir, "vars"), 0o700); err == nil {
		w.db, err = sqlite3.Open(filepath.Join(w.dir, "vars", "_store.db"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	w.exec("PRAGMA journal_mode = " + mode + "; PRAGMA synchronous = off; PRAGMA foreign_keys = on;" + schemaOfStore)
	return w
}

func (w *writer) exec(sql string) {
	w.Helper()
	if err := w.db.Exec(sql); err != nil {
		w.Fatal(err)
	}
}

// setThread is what makes a thread of the predecessor.
func setThread(id, head, tags string) string {
	return fmt.Sprintf("INSERT OR REPLACE INTO vars VALUES ('@uwf/thread/%s', '%s', '%s', 1, 1, '%s', '[]');", id, hashC, head, tags)
}

// readThreads reads the store, without problems.
func (w *writer) readThreads(fsys fs.FS) []ocas.Thread {
	w.Helper()
	src := ocas.New(known())
	src.AddFolder("store", fsys)
	if p := src.Problems(); len(p) > 0 {
		w.Fatal(p)
	}
	return src.Threads()
}

// listFiles are names, bytes and times of all files below a folder.
func listFiles(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		fmt.Fprintf(&b, "%s %v %x\n", name, info.ModTime(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDatabaseInUse: what was committed is read, and nothing else, whatever of it stands in
// which file; and neither beside the database nor in the folder of temporary files is
// anything left.
func TestDatabaseInUse(t *testing.T) {
	large := setThread(ocastest.Active, hashB, "{}") + setThread(ocastest.Ended, hashB, "{}")
	for i := range 40 {
		large += fmt.Sprintf("INSERT INTO vars VALUES ('@other/%d', 'x', '%s', 1, 1, '{}', '[]');", i, strings.Repeat("x", 20_000))
	}
	const spill = "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN;"
	for name, tc := range map[string]struct {
		mode  string
		then  string // after thread Active was committed at hashA
		crash bool   // what is left of it then is read, as after a crash
		want  string
		file  string // that must be there, and larger than
		size  int64
	}{
		"written to the WAL alone":      {"wal", setThread(ocastest.Active, hashB, "{}"), false, ocastest.Active + " " + hashB, "_store.db-wal", 1000},
		"the WAL after a crash":         {"wal", setThread(ocastest.Active, hashB, "{}"), true, ocastest.Active + " " + hashB, "_store.db-wal", 1000},
		"not committed, in the WAL":     {"wal", spill + large, false, ocastest.Active + " " + hashA, "_store.db-wal", 500_000},
		"not committed, after a crash":  {"wal", spill + large, true, ocastest.Active + " " + hashA, "_store.db-wal", 500_000},
		"not committed, in the file":    {"delete", spill + "DELETE FROM vars;" + large, false, ocastest.Active + " " + hashA, "_store.db-journal", 1000},
		"a hot journal after a crash":   {"delete", spill + "DELETE FROM vars;" + large, true, ocastest.Active + " " + hashA, "_store.db-journal", 1000},
		"a journal that is cut to zero": {"truncate", setThread(ocastest.Active, hashB, "{}"), false, ocastest.Active + " " + hashB, "_store.db-journal", -1},
		"a journal that is kept":        {"persist", setThread(ocastest.Active, hashB, "{}"), false, ocastest.Active + " " + hashB, "_store.db-journal", 500},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			w := openStore(t, tc.mode)
			w.exec("PRAGMA wal_autocheckpoint = 0;" + setThread(ocastest.Active, hashA, "{}"))
			w.exec(tc.then)
			dir := w.dir
			if tc.crash {
				dir = t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(w.dir)); err != nil {
					t.Fatal(err)
				}
				_ = os.Remove(filepath.Join(dir, "vars", "_store.db-shm"))
			}
			if info, err := os.Stat(filepath.Join(dir, "vars", tc.file)); err != nil || info.Size() <= tc.size {
				t.Fatalf("the case is none: %v, %v", info, err)
			}
			before := listFiles(t, dir)
			var got []string
			for _, th := range w.readThreads(os.DirFS(dir)) {
				got = append(got, string(th.ID)+" "+string(th.Head))
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("%s, want %s", s, tc.want)
			}
			if after := listFiles(t, dir); after != before {
				t.Errorf("before:\n%.300s\nafter:\n%.300s", before, after)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// busyFS is a store that somebody writes to whenever a file is opened, so many times.
type busyFS struct {
	fs.FS
	times int
	write func()
}

func (b *busyFS) Open(name string) (fs.File, error) {
	if b.times != 0 {
		b.times--
		b.write()
	}
	return b.FS.Open(name)
}

// TestWrittenMeanwhile: lists that are written to while they are read are read again, all of
// them, until they belong together.
func TestWrittenMeanwhile(t *testing.T) {
	for _, times := range []int{1, 2, 3, 4, 5, 6, 7, 11, 20} {
		w := openStore(t, "wal")
		w.exec("PRAGMA wal_autocheckpoint = 1")
		n := 0
		fsys := &busyFS{FS: os.DirFS(w.dir), times: times}
		fsys.write = func() { // two threads whose state belongs together, and now and then a page more
			n++
			tags := fmt.Sprintf(`{"suspendedRole":"r","suspendMessage":"%d","more":"%s"}`, n, strings.Repeat("x", n*n*20))
			w.exec("BEGIN;" + setThread(ocastest.Active, hashA, tags) + setThread(ocastest.Suspended, hashB, tags) + "COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")
		}
		fsys.write()
		threads := w.readThreads(fsys)
		if len(threads) != 2 || threads[0].Reason != fmt.Sprint(n) || threads[1].Reason != fmt.Sprint(n) {
			t.Errorf("written %d times: %+v", n, threads)
		}
	}
	// The same of text: the thread ends, which moves it from one file to the other.
	text := fstest.MapFS{"threads.yaml": {Data: []byte(ocastest.Active + ": " + hashA)}, "history.jsonl": {}}
	n := 0
	fsys := &busyFS{FS: text, times: 3, write: func() {
		n++
		text["history.jsonl"] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"thread":"%s","head":"%s","completedAt":%d}`, ocastest.Ended, hashA, n)}
		text["threads.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%s: {head: %s, suspendedRole: r, suspendMessage: '%d'}", ocastest.Active, hashA, n)}
	}}
	src := ocas.New(known())
	src.AddFolder("root", fsys)
	if th := src.Threads(); len(th) != 2 || th[0].Reason != fmt.Sprint(n) || th[1].CompletedAt != int64(n) {
		t.Errorf("written %d times: %+v", n, th)
	}
	// Who never gets a reading says so.
	fsys.times = -1
	src = ocas.New(known())
	src.AddFolder("root", fsys)
	if p := src.Problems(); len(p) != 1 || p[0].File != "root" || !strings.Contains(p[0].Why, "written to all the time") || len(src.Threads()) > 0 {
		t.Errorf("%v, %v", p, src.Threads())
	}
}

// TestReadWhileCommitting: with somebody who goes on committing, each reading is one state, or
// none and says so.
func TestReadWhileCommitting(t *testing.T) {
	w := openStore(t, "wal")
	w.exec("PRAGMA wal_autocheckpoint = 3")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	commit := func(n int) error {
		tags := fmt.Sprintf(`{"suspendedRole":"r","suspendMessage":"%d","more":"%s"}`, n, strings.Repeat("x", n%7*1000))
		return w.db.Exec("BEGIN;" + setThread(ocastest.Active, hashA, tags) + setThread(ocastest.Suspended, hashB, tags) + "COMMIT")
	}
	if err := commit(0); err != nil {
		t.Fatal(err)
	}
	go func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := commit(n); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 5 {
		src := ocas.New(known())
		src.AddFolder("store", os.DirFS(w.dir))
		th, p := src.Threads(), src.Problems()
		switch {
		case len(p) == 1 && strings.Contains(p[0].Why, "written to all the time") && len(th) == 0:
		case len(p) == 0 && len(th) == 2 && th[0].Reason == th[1].Reason:
		default:
			t.Errorf("%+v, %v", th, p)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if th := w.readThreads(os.DirFS(w.dir)); len(th) != 2 || th[0].Reason != th[1].Reason {
		t.Errorf("%+v", th)
	}
}

// TestDamagedWAL: SQLite takes a damaged frame for the end of the WAL, and what was committed
// after it for nothing.
func TestDamagedWAL(t *testing.T) {
	w := openStore(t, "wal")
	w.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE);" + setThread(ocastest.Active, hashA, "{}") + setThread(ocastest.Active, hashB, "{}"))
	db, err := os.ReadFile(filepath.Join(w.dir, "vars", "_store.db"))
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(filepath.Join(w.dir, "vars", "_store.db-wal"))
	if err != nil || len(wal) < 3*4120 {
		t.Fatal(len(wal), err)
	}
	for name, tc := range map[string]struct {
		damage func(b []byte) []byte
		wrong  bool
	}{
		"none":           {func(b []byte) []byte { return b }, false},
		"its header":     {func(b []byte) []byte { b[13] ^= 1; return b }, true},
		"its page size":  {func(b []byte) []byte { b[8] ^= 0x80; return b }, true},
		"a first frame":  {func(b []byte) []byte { b[32+24+100] ^= 1; return b }, true},
		"the last frame": {func(b []byte) []byte { b[len(b)-100] ^= 1; return b }, true},
		"garbage behind": {func(b []byte) []byte { return append(b, make([]byte, 9000)...) }, false},
		"a frame of before": {func(b []byte) []byte {
			old := bytes.Clone(b[len(b)-4120:])
			old[8] ^= 1
			return append(b, old...)
		}, false},
	} {
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"vars/_store.db": {Data: db}, "vars/_store.db-wal": {Data: tc.damage(bytes.Clone(wal))}})
		p := src.Problems()
		if wrong := len(p) == 1 && p[0].File == "x/vars/_store.db-wal"; wrong != tc.wrong || !wrong && (len(p) > 0 || len(src.Threads()) != 1 || src.Threads()[0].Head != hashB) {
			t.Errorf("%s: %v, %v", name, p, src.Threads())
		}
	}
}

// TestVariablesOfDatabase: what the rows mean.
func TestVariablesOfDatabase(t *testing.T) {
	w := openStore(t, "wal")
	w.exec(setThread(ocastest.Active, hashA, `{"status":"idle"}`) +
		// Of two of one name the one that was made later counts.
		"INSERT INTO vars VALUES ('@uwf/thread/" + ocastest.Suspended + "', 'x', '" + hashB + "', 2, 9, '{}', '[]'), ('@uwf/thread/" + ocastest.Suspended + "', 'y', '" + hashC + "', 3, 3, '{}', '[]');" +
		// The history of before it was merged with the threads.
		"INSERT INTO vars VALUES ('@uwf/history/" + ocastest.Cancelled + "', 'x', '" + hashB + "', 2, 9, '{\"workflow\":\"x\",\"completedAt\":\"7\",\"reason\":\"cancelled\"}', '[]');" +
		"INSERT INTO vars VALUES ('@uwf/history/" + ocastest.Ended + "', 'x', '" + hashB + "', 2, 9, '{\"reason\":\"completed\"}', '[]');" + setThread(ocastest.Ended, hashC, "{}") +
		// A workflow of three versions, the last of another schema.
		"INSERT INTO vars VALUES ('@uwf/registry/flow', 'x', '" + hashB + "', 2, 5, '{}', '[]'), ('@uwf/registry/flow', 'y', '" + hashC + "', 7, 7, '{}', '[]');" +
		"INSERT INTO var_history VALUES ('@uwf/registry/flow', 'x', '" + hashA + "', 0, 2), ('@uwf/registry/flow', 'x', '" + hashB + "', 1, 5), ('@uwf/registry/flow', 'y', '" + hashC + "', 0, 7);" +
		"INSERT INTO vars VALUES ('@ocas/string', 'x', 'no hash', 2, 5, 'no JSON object', '[]')")
	src := ocas.New(known())
	src.AddFolder("store", os.DirFS(w.dir))
	want := "[{06F2S0000000000000000000G0 AAAAAAAAAAAAA active   0} {06F2S0000000000000000000G4 CCCCCCCCCCCCC active   0} " +
		"{06F2S0000000000000000000G8 BBBBBBBBBBBBB ended   0} {06F2S0000000000000000000GC BBBBBBBBBBBBB cancelled   7}]"
	if got := fmt.Sprint(src.Threads()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := fmt.Sprint(src.Workflows()); got != "map[flow:{CCCCCCCCCCCCC 7 [{BBBBBBBBBBBBB 5} {AAAAAAAAAAAAA 2}]}]" {
		t.Error(got)
	}
	if p := src.Problems(); len(p) != 1 || !strings.Contains(p[0].Why, `"@ocas/string": its tags are no JSON object`) {
		t.Error(p)
	}
}

// TestOldDatabase: variables.db (packages/core/src/variable-store.ts of ocas, initDb), in
// which position 0 is the newest. What both databases have counts as the newer one says.
func TestOldDatabase(t *testing.T) {
	w := openStore(t, "wal")
	db, err := sqlite3.Open(filepath.Join(w.dir, "variables.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Exec(`
		CREATE TABLE variables (name TEXT NOT NULL, schema TEXT NOT NULL, value TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, PRIMARY KEY (name, schema));
		CREATE INDEX idx_var_name ON variables(name);
		CREATE TABLE variable_tags (variable_name TEXT NOT NULL, variable_schema TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (variable_name, variable_schema, key));
		CREATE TABLE variable_history (variable_name TEXT NOT NULL, variable_schema TEXT NOT NULL, value TEXT NOT NULL, position INTEGER NOT NULL, set_at INTEGER NOT NULL,
			PRIMARY KEY (variable_name, variable_schema, position));
		INSERT INTO variables VALUES ('@uwf/registry/flow', 'x', '` + hashB + `', 1, 5), ('@uwf/thread/` + ocastest.Active + `', 's', '` + hashA + `', 1, 1), ('@uwf/thread/` + ocastest.Ended + `', 's', '` + hashA + `', 1, 1);
		INSERT INTO variable_tags VALUES ('@uwf/thread/` + ocastest.Active + `', 's', 'suspendedRole', 'r'), ('@uwf/thread/` + ocastest.Active + `', 's', 'suspendMessage', 'm');
		INSERT INTO variable_history VALUES ('@uwf/registry/flow', 'x', '` + hashB + `', 0, 5), ('@uwf/registry/flow', 'x', '` + hashA + `', 1, 2)`); err != nil {
		t.Fatal(err)
	}
	w.exec(setThread(ocastest.Ended, hashB, `{"status":"end","completedAt":"9"}`))
	src := ocas.New(known())
	src.AddFolder("store", os.DirFS(w.dir))
	if got := fmt.Sprint(src.Threads(), src.Workflows(), src.Problems()); got !=
		"[{06F2S0000000000000000000G0 AAAAAAAAAAAAA suspended r m 0} {06F2S0000000000000000000G8 BBBBBBBBBBBBB ended   9}] map[flow:{BBBBBBBBBBBBB 5 [{AAAAAAAAAAAAA 2}]}] []" {
		t.Error(got)
	}
}

// TestWhichListCounts: a file that still has its name is newer than the database, wherever it
// stands in the command line.
func TestWhichListCounts(t *testing.T) {
	w := openStore(t, "wal")
	w.exec(setThread(ocastest.Active, hashA, "{}") + setThread(ocastest.Ended, hashA, "{}") + setThread(ocastest.Suspended, hashA, "{}") +
		"INSERT INTO vars VALUES ('@uwf/history/" + ocastest.Cancelled + "', 'x', '" + hashB + "', 2, 9, '{\"reason\":\"cancelled\"}', '[]')")
	root := fstest.MapFS{
		"threads.yaml":  {Data: []byte(ocastest.Ended + ": " + hashB + "\n" + ocastest.Active + ": " + hashB + "\n")},
		"history.jsonl": {Data: []byte(`{"thread":"` + ocastest.Ended + `","head":"` + hashC + `","completedAt":1,"reason":"completed"}` + "\n" + `{"thread":"` + ocastest.Cancelled + `","head":"` + hashC + `","completedAt":1,"reason":"completed"}`)},
	}
	for _, order := range [][]fs.FS{{os.DirFS(w.dir), root}, {root, os.DirFS(w.dir)}} {
		src := ocas.New(known())
		for _, fsys := range order {
			src.AddFolder("x", fsys)
		}
		if got := fmt.Sprint(src.Threads()); got != "[{06F2S0000000000000000000G0 BBBBBBBBBBBBB active   0} {06F2S0000000000000000000G4 AAAAAAAAAAAAA active   0} {06F2S0000000000000000000G8 CCCCCCCCCCCCC ended   1} {06F2S0000000000000000000GC BBBBBBBBBBBBB cancelled   0}]" {
			t.Error(got)
		}
	}
}

// TestHostileDatabase: a database is a program. What it may do is give rows.
func TestHostileDatabase(t *testing.T) {
	rows := setThread(ocastest.Active, hashA, "{}") + setThread(ocastest.Ended, hashA, "{}")
	for name, tc := range map[string]struct{ sql, says string }{
		"a view":          {rows + "ALTER TABLE vars RENAME TO v; CREATE VIEW vars AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT v.* FROM v, r", "no table vars"},
		"no table":        {"DROP TABLE var_history; DROP TABLE vars", "no table vars"},
		"other columns":   {"DROP TABLE var_history; DROP TABLE vars; CREATE TABLE vars (a)", "no such column"},
		"a huge value":    {"DROP TABLE var_history; DROP TABLE vars; CREATE TABLE vars (name, schema, value, created, updated, tags AS (zeroblob(900000000)))" + "; INSERT INTO vars VALUES ('a', 'b', 'c', 1, 1)", "views or computed columns"},
		"endless history": {rows + "DROP TABLE var_history; CREATE VIEW var_history(name, schema, value, set_at) AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'a', 'b', 'c', x FROM c WHERE x < 0", "views or computed columns"},
		"a large value":   {"DROP TABLE var_history; DELETE FROM vars; INSERT INTO vars SELECT 'a', 'b', zeroblob(17000000), 1, 1, '{}', '[]'", "too big"},
		"a virtual table": {"DROP TABLE var_history; DROP TABLE vars; PRAGMA writable_schema = on; INSERT INTO sqlite_schema VALUES ('table', 'vars', 'vars', 0, 'CREATE VIRTUAL TABLE vars USING x(name, schema, value, created, updated, tags)')", "no table vars"},
	} {
		t.Run(name, func(t *testing.T) {
			w := openStore(t, "delete")
			w.exec(tc.sql)
			src := ocas.New(known())
			src.AddFolder("store", os.DirFS(w.dir))
			if p := src.Problems(); len(p) == 0 || !strings.Contains(fmt.Sprint(p), tc.says) || len(src.Threads()) > 0 {
				t.Errorf("%v, %v", p, src.Threads())
			}
		})
	}
}

func TestRegistryFile(t *testing.T) {
	text := "short: " + hashA + "\nlong:\n  hash: " + hashC + "\n  timestamp: 30\n  history:\n    - hash: " + hashA + "\n      timestamp: 10\n    - {hash: " + hashB + ", timestamp: 20}\n" +
		"bad: {hash: " + hashA + ", history: [{hash: x}]}\nworse: {hash: " + hashA + ", history: 7}\n\" x\": " + hashA + "\n"
	src := ocas.New(known())
	src.AddFolder("root", fstest.MapFS{"registry.yaml": {Data: []byte(text)}})
	if got := fmt.Sprint(src.Workflows()); got != "map[bad:{AAAAAAAAAAAAA 0 []} long:{CCCCCCCCCCCCC 30 [{BBBBBBBBBBBBB 20} {AAAAAAAAAAAAA 10}]} short:{AAAAAAAAAAAAA 0 []}]" {
		t.Error(got)
	}
	lines := ""
	for _, p := range src.Problems() {
		lines += fmt.Sprint(p.Line, " ")
	}
	if lines != "9 10 11 " {
		t.Error(src.Problems())
	}
}

// TestDamagedDatabase: wherever a byte of a database differs, what comes of it can be stored,
// and a thread that comes of it is one that was there.
func TestDamagedDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := ocastest.Unpack("../../testdata/stores/0604.tgz", dir); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "0604/ocas/vars/_store.db"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[statefile.ThreadID]bool{}
	for n := -1; n < len(whole); n += 61 {
		db := bytes.Clone(whole)
		if n >= 0 {
			db[n] ^= 1 << (n % 8)
		}
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"vars/_store.db": {Data: db}})
		checkStorable(t, src)
		for _, th := range src.Threads() {
			if there[th.ID] = there[th.ID] || n < 0; !there[th.ID] {
				t.Errorf("byte %d: %v: %v", n, th, src.Problems())
			}
		}
	}
	if len(there) != 6 {
		t.Error(there)
	}
}

// TestDamagedPage: a page of rows that can't be read leaves out its rows alone.
func TestDamagedPage(t *testing.T) {
	w := openStore(t, "delete")
	id := func(i int) string { return fmt.Sprintf("06F2S00000000000000%05dG0", i) }
	const rows = 300
	for i := range rows {
		w.exec(setThread(id(i), hashA, "{}"))
	}
	file := filepath.Join(w.dir, "vars", "_store.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	row := hashC + hashA // of the table, not of an index
	for _, i := range []int{3, 100, 200, rows - 1} {
		at := 0
		for whole[at] != 0x0d || !bytes.Contains(whole[at:at+4096], []byte(id(i)+row)) { // a leaf: the root still holds old bytes
			at += 4096
		}
		lost := bytes.Count(whole[at:at+4096], []byte(row))
		db := bytes.Clone(whole)
		clear(db[at : at+4096])
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"vars/_store.db": {Data: db}})
		if n := len(src.Threads()); n != rows-lost || lost == 0 || lost > 100 || len(src.Problems()) == 0 {
			t.Errorf("row %d: %d threads, %d on the page: %v", i, n, lost, src.Problems())
		}
	}
}

// FuzzVariables: whatever is in the rows of a store, which read as those of _vars.jsonl do,
// what comes of it can be stored.
func FuzzVariables(f *testing.F) {
	f.Add(`{"name":"@uwf/thread/` + ocastest.Active + `","schema":"x","value":"` + hashA + `","created":1,"updated":2,"tags":{"status":"suspended","suspendedRole":"r"},"history":[{"value":"` + hashA + `","setAt":1}]}`)
	f.Add(`{"name":"@uwf/registry/x","value":"` + hashA + `","updated":2,"history":[{"value":"` + hashB + `","setAt":1}]}` + "\n" + `{"name":"@uwf/registry/x","__op":"remove"}`)
	f.Fuzz(func(t *testing.T, text string) {
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"_vars.jsonl": {Data: []byte(text)}})
		checkStorable(t, src)
	})
}

// FuzzRegistry is the same for registry.yaml.
func FuzzRegistry(f *testing.F) {
	f.Add("a: " + hashA + "\nb: {hash: " + hashA + ", timestamp: 1, history: [{hash: " + hashB + ", timestamp: 2}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		src := ocas.New(known())
		src.AddFolder("x", fstest.MapFS{"registry.yaml": {Data: []byte(text)}})
		checkStorable(t, src)
	})
}

func checkStorable(t *testing.T, src *ocas.Source) {
	t.Helper()
	for _, th := range src.Threads() {
		if !th.ID.Valid() || !th.Head.Valid() || th.CompletedAt < 0 {
			t.Errorf("%+v", th)
		}
	}
	for name, e := range src.Workflows() {
		if _, err := statefile.NewRegistry().With(map[string]*statefile.RegistryEntry{name: &e}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
