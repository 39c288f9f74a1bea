package ocas

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// database is a file of SQLite that has variables, in one of the forms that ocas gave it.
type database struct {
	file    string
	table   string   // that has the variables
	query   string   // rowid, name, schema, value, created, updated, tags as JSON
	history string   // name, schema, value, when it was set
	indexes []string // on the names of the variables
}

// databaseForms are all, the one that counts last: packages/core/src/variable-store.ts and
// packages/fs/src/sqlite-store.ts of ocas.
func databaseForms() []database {
	return []database{{
		file: "variables.db", table: "variables",
		query: `SELECT rowid, name, schema, value, created, updated, (SELECT json_group_object(key, t.value) FROM variable_tags t
			WHERE variable_name = name AND variable_schema = schema) FROM variables`,
		history: `SELECT variable_name, variable_schema, value, set_at FROM variable_history`,
		indexes: []string{"sqlite_autoindex_variables_1", "idx_var_name"},
	}, {
		file: "vars/_store.db", table: "vars",
		query:   `SELECT rowid, name, schema, value, created, updated, tags FROM vars`,
		history: `SELECT name, schema, value, set_at FROM var_history`,
		indexes: []string{"sqlite_autoindex_vars_1", "idx_vars_name"},
	}}
}

// databaseParts are the endings of the files that a database consists of: itself, what was
// committed and not yet written into it, and what an open transaction wrote over.
func databaseParts() []string { return []string{"", "-wal", "-journal"} }

// maxRows bounds the rows of a table: in a damaged one they can run in a circle.
const maxRows = 1 << 20

// maxValues bounds what all rows of a table hold, in bytes: more than the file of a sound one.
const maxValues = 2 * maxList

// readDatabase reads the variables of a database, of a damaged one those that can be read. It
// opens a copy: SQLite writes beside a database of this form even to read it.
func (s *Source) readDatabase(file string, d database, files map[string]listFile) {
	dir, err := os.MkdirTemp("", "uwf-import-") // 0700
	if err != nil {
		s.addProblem(file, 0, err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "copy.db")
	for _, suffix := range databaseParts() {
		f, there := files[d.file+suffix]
		if !there {
			continue
		}
		if err := errors.Join(f.err, os.WriteFile(copied+suffix, f.data, 0o600)); err != nil {
			s.addProblem(file+suffix, 0, err)
			return
		}
	}
	if err := checkWAL(files[d.file+"-wal"].data); err != nil {
		s.addProblem(file+"-wal", 0, err)
	}
	r := copyReader{database: d}
	if err := r.openCopy(copied); err != nil {
		r.addWrong(err.Error())
	}
	for _, w := range r.wrong {
		s.addProblem(file, 0, fmt.Errorf("the database is damaged: %s", strings.ReplaceAll(w, copied, file)))
	}
	s.addVariables(file, r.vars)
}

// copyReader reads the copy of a database.
type copyReader struct {
	database
	db    *sqlite3.Conn
	vars  []variable
	wrong []string // what is damaged, each once
}

func (r *copyReader) addWrong(what string) {
	if !slices.Contains(r.wrong, what) {
		r.wrong = append(r.wrong, what)
	}
}

// openCopy opens the database, and reads what can be read.
func (r *copyReader) openCopy(file string) (err error) {
	if r.db, err = sqlite3.Open(file); err != nil {
		return err
	}
	defer func() { _ = r.db.Close() }()
	r.db.Limit(sqlite3.LIMIT_LENGTH, maxNode)
	_, err1 := r.db.Config(sqlite3.DBCONFIG_DEFENSIVE, true)
	_, err2 := r.db.Config(sqlite3.DBCONFIG_TRUSTED_SCHEMA, false)
	// Nobody else has the copy, and without others it needs no shared memory.
	if err := errors.Join(err1, err2, r.db.Exec("PRAGMA locking_mode = exclusive")); err != nil {
		return err
	}
	isTable := false // and no view, and no program
	if err := r.eachRow("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = '"+r.table+"'", func(*sqlite3.Stmt) { isTable = true }); err != nil {
		return err
	}
	if !isTable {
		return fmt.Errorf("it has no table %s", r.table)
	}
	// Views and computed columns can make rows without end; the predecessor made none.
	computed := false
	err = r.eachRow(`SELECT 1 FROM sqlite_schema WHERE type = 'view' UNION ALL
		SELECT 1 FROM sqlite_schema m, pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND x.hidden <> 0 LIMIT 1`, func(*sqlite3.Stmt) { computed = true })
	if err == nil && computed {
		err = errors.New("it has views or computed columns, which the TypeScript uwf never made")
	}
	if err != nil {
		return err
	}
	if err := r.eachRow("PRAGMA integrity_check(10)", func(row *sqlite3.Stmt) {
		if text := row.ColumnText(0); text != "ok" {
			r.addWrong(text)
		}
	}); err != nil {
		r.addWrong(err.Error())
	}
	r.readVariables()
	return nil
}

// readVariables reads the variables, each with its former values.
func (r *copyReader) readVariables() {
	damaged := len(r.wrong) > 0
	former := map[[2]string]map[statefile.RegistryVersion]bool{}
	r.eachRowBothWays(r.history, func(row *sqlite3.Stmt) {
		of, v := [2]string{row.ColumnText(0), row.ColumnText(1)}, statefile.RegistryVersion{Hash: node.Hash(row.ColumnText(2)), Timestamp: row.ColumnInt64(3)}
		if former[of] == nil {
			former[of] = map[statefile.RegistryVersion]bool{}
		}
		former[of][v] = true
	})
	vars := map[int64]variable{}
	r.eachRowBothWays(r.query, func(row *sqlite3.Stmt) {
		name := row.ColumnText(1)
		parsed, err := node.ParseJSON(row.ColumnRawText(6))
		tags, ok := parsed.(map[string]any)
		if !ok {
			r.addWrong(fmt.Sprintf("%.80q: its tags are no JSON object: %v", name, err))
			return
		}
		vars[row.ColumnInt64(0)] = variable{name: name, schema: row.ColumnText(2), value: row.ColumnText(3), created: row.ColumnInt64(4), updated: row.ColumnInt64(5), tags: tags}
	})
	for _, id := range slices.Sorted(maps.Keys(vars)) {
		v := vars[id]
		if damaged && !r.isIndexed(id, v) {
			r.addWrong(fmt.Sprintf("%.80q has another name in the table than in its indexes", v.name))
			continue
		}
		v.former = slices.Collect(maps.Keys(former[[2]string{v.name, v.schema}]))
		r.vars = append(r.vars, v)
	}
}

// isIndexed reports whether a row has the name that one of its indexes says: nothing else
// tells of a name that is damaged. An index that can't be read says nothing.
func (r *copyReader) isIndexed(id int64, v variable) bool {
	for _, index := range r.indexes {
		found := false
		err := r.eachRow("SELECT 1 FROM "+r.table+" INDEXED BY "+index+" WHERE name = ?1 AND schema = ?2 AND rowid = ?3", func(*sqlite3.Stmt) { found = true }, v.name, v.schema, id)
		if found || err != nil {
			return true
		}
	}
	return false
}

// eachRowBothWays reads the rows from the first on, and where that ends at a damaged page
// from the last back.
func (r *copyReader) eachRowBothWays(query string, visit func(*sqlite3.Stmt)) {
	if err := r.eachRow(query, visit); err != nil {
		r.addWrong(err.Error())
		_ = r.eachRow(query+" ORDER BY rowid DESC", visit)
	}
}

// eachRow reads rows.
func (r *copyReader) eachRow(query string, visit func(*sqlite3.Stmt), args ...any) error {
	stmt, _, err := r.db.Prepare(query)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	for i, a := range args {
		switch a := a.(type) {
		case string:
			err = errors.Join(err, stmt.BindText(i+1, a))
		case int64:
			err = errors.Join(err, stmt.BindInt64(i+1, a))
		}
	}
	bytes := 0
	for n := 0; err == nil && stmt.Step(); n++ {
		for i := range stmt.ColumnCount() {
			bytes += len(stmt.ColumnRawText(i))
		}
		if n == maxRows || bytes > maxValues {
			return fmt.Errorf("more than %d rows, or %d bytes", maxRows, maxValues)
		}
		visit(stmt)
	}
	return errors.Join(err, stmt.Err())
}
