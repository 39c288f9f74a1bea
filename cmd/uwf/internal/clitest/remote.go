package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// Remotes are the repositories that a test's commands reach: those on the disk through
// memory, all others as they are reached everywhere. The zero value is ready.
type Remotes struct {
	// Served are folders of repositories that this process serves, by their URLs: they
	// are read like those on the disk, and pushed to as everywhere.
	Served map[string]string

	mu    sync.Mutex
	disks map[string]*diskRemote // by the repository's folder
}

// DialWire opens a remote. It is what app.Factory.DialWire wants.
func (r *Remotes) DialWire(address string, o wire.DialOptions) (wire.Remote, error) {
	served, err := wire.Dial(address, o)
	if err != nil {
		return nil, err
	}
	dir := address
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		dir = filepath.FromSlash(u.Path)
	}
	place, isServed := r.Served[address]
	if isServed {
		dir = place
	}
	if _, err := os.Stat(filepath.Join(dir, "objects")); !filepath.IsAbs(dir) || err != nil {
		return served, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disks == nil {
		r.disks = map[string]*diskRemote{}
	}
	d, ok := r.disks[dir]
	if !ok {
		d = &diskRemote{dir: dir}
		d.memory = wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: d.clockNow, URL: served.URL()})
		r.disks[dir] = d
	}
	d.mu.Lock()
	d.served, d.now = served, o.Now
	d.mu.Unlock()
	if isServed {
		return servedRemote{d, served}, nil
	}
	return d, nil
}

// diskRemote is a repository on the disk that is kept in memory too: before each
// request what others wrote is read, and after each push what is new is written. So
// git and processes of uwf see what commands in this process did, and the other way
// round, as long as they don't work at the same time.
type diskRemote struct {
	dir    string
	memory *wiretest.Memory

	mu     sync.Mutex
	served wire.Remote // the same repository, read by running git
	now    func() time.Time
}

// servedRemote is a repository on the disk whose server takes the pushes.
type servedRemote struct {
	*diskRemote
	server wire.Remote
}

// Atomic implements wire.Remote.
func (s servedRemote) Atomic(ctx context.Context) (bool, error) { return s.server.Atomic(ctx) }

// Push implements wire.Remote.
func (s servedRemote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	at, err := s.server.Push(ctx, req)
	if err == nil {
		var objects []wire.Object
		for _, o := range req.Objects {
			objects = append(objects, o.Object)
		}
		s.memory.AddObjects(objects...) // at once: who sees one of them counts on all
	}
	return at, err
}

// clockNow is that of the command that opened the remote last. It is called with the
// remote locked.
func (d *diskRemote) clockNow() time.Time {
	if d.now == nil {
		return time.Now()
	}
	return d.now()
}

var _ wire.Remote = (*diskRemote)(nil)

// URL implements wire.Remote.
func (d *diskRemote) URL() string { return d.memory.URL() }

// Atomic implements wire.Remote.
func (d *diskRemote) Atomic(ctx context.Context) (bool, error) { return d.memory.Atomic(ctx) }

// List implements wire.Remote.
func (d *diskRemote) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readDisk(ctx); err != nil {
		return wire.Listing{}, err
	}
	return d.memory.List(ctx, prefixes...)
}

// Fetch implements wire.Remote. What no ref reaches git alone knows.
func (d *diskRemote) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readDisk(ctx); err != nil {
		return nil, err
	}
	objects, err := d.memory.Fetch(ctx, req)
	if errors.Is(err, wire.ErrNotFound) {
		return d.served.Fetch(ctx, req)
	}
	return objects, err
}

// Push implements wire.Remote.
func (d *diskRemote) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readDisk(ctx); err != nil {
		return time.Time{}, err
	}
	before := d.memory.Refs()
	at, err := d.memory.Push(ctx, req)
	return at, errors.Join(err, d.writeDisk(req, before))
}

// readDisk takes over the refs that the disk has, and what those reach that are new.
func (d *diskRemote) readDisk(ctx context.Context) error {
	head, there, err := readRefs(d.dir)
	if err != nil {
		return fmt.Errorf("read the refs of %s: %w", d.dir, err)
	}
	d.memory.SetHead(head)
	known := d.memory.Refs()
	var wants []wire.ID
	for name, id := range there {
		if _, ok := d.memory.Get(id); known[name] != id && !ok {
			wants = append(wants, id)
		}
	}
	objects, err := d.readLoose(slices.Clone(wants))
	if err != nil { // something is in a pack, or is damaged: git knows
		objects, err = d.served.Fetch(ctx, wire.FetchRequest{Wants: wants})
	}
	if err != nil {
		return err
	}
	d.memory.AddObjects(slices.Collect(maps.Values(objects))...)
	for name := range known {
		d.memory.SetRef(name, there[name])
	}
	for name, id := range there {
		d.memory.SetRef(name, id)
	}
	return nil
}

// readLoose reads what these ids reach and memory lacks, without running git. Where
// memory has an object, it has all that the object reaches.
func (d *diskRemote) readLoose(wants []wire.ID) (wire.Objects, error) {
	objects := wire.Objects{}
	for len(wants) > 0 {
		id := wants[len(wants)-1]
		wants = wants[:len(wants)-1]
		_, known := d.memory.Get(id)
		if _, read := objects[id]; read || known {
			continue
		}
		o, err := readObject(d.dir, id)
		if err != nil {
			return nil, err
		}
		more, err := namedObjects(o)
		if err != nil {
			return nil, err
		}
		objects.Add(o)
		wants = append(wants, more...)
	}
	return objects, nil
}

// namedObjects lists the objects of this repository that an object names.
func namedObjects(o wire.Object) ([]wire.ID, error) {
	switch o.Type {
	case plumbing.BlobObject:
		return nil, nil
	case plumbing.TreeObject:
		entries, err := gitobj.DecodeTree(o.Data)
		var ids []wire.ID
		for _, e := range entries {
			if e.Mode != filemode.Submodule {
				ids = append(ids, e.ID)
			}
		}
		return ids, err
	case plumbing.CommitObject:
		c, err := gitobj.DecodeCommit(o.Data)
		return append(c.Parents, c.Tree), err
	}
	return nil, fmt.Errorf("%s is a %s", o.ID, o.Type)
}

// readRefs reads a repository's refs, and which one HEAD is. Servers may push and
// remove some meanwhile.
func readRefs(dir string) (head string, refs map[string]wire.ID, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	if err != nil {
		return "", nil, err
	}
	head, _ = strings.CutPrefix(strings.TrimSpace(string(text)), "ref: ")
	loose := map[string]wire.ID{}
	err = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, e fs.DirEntry, err error) error {
		if e != nil && errors.Is(err, fs.ErrNotExist) {
			return nil // a folder that a push emptied since its name was read
		}
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		value, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a push removed this ref
		}
		name, relErr := filepath.Rel(dir, path)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		if id := strings.TrimSpace(string(value)); plumbing.IsHash(id) {
			loose[filepath.ToSlash(name)] = plumbing.NewHash(id)
		}
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	// After the loose ones, as git does: a ref that is packed meanwhile is in one of both.
	refs, err = readPackedRefs(dir)
	maps.Copy(refs, loose)
	return head, refs, err
}

func readPackedRefs(dir string) (map[string]wire.ID, error) {
	refs := map[string]wire.ID{}
	text, err := os.ReadFile(filepath.Join(dir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return refs, nil
	}
	for line := range strings.Lines(string(text)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && plumbing.IsHash(id) {
			refs[name] = plumbing.NewHash(id)
		}
	}
	return refs, err
}

// writeDisk puts onto the disk what a push brought.
func (d *diskRemote) writeDisk(req wire.PushRequest, before map[string]wire.ID) error {
	after := d.memory.Refs()
	if maps.Equal(before, after) {
		return nil
	}
	for _, o := range req.Objects {
		if err := writeObject(d.dir, o.Object); err != nil {
			return fmt.Errorf("write an object of %s: %w", d.dir, err)
		}
	}
	for _, u := range req.Updates {
		if before[u.Name] == after[u.Name] {
			continue
		}
		if err := writeRef(d.dir, u.Name, after[u.Name]); err != nil {
			return fmt.Errorf("write %s of %s: %w", u.Name, d.dir, err)
		}
	}
	return nil
}

// objectFile is where a repository keeps an object that is in no pack.
func objectFile(dir string, id wire.ID) string {
	name := id.String()
	return filepath.Join(dir, "objects", name[:2], name[2:])
}

// readObject reads a loose object.
func readObject(dir string, id wire.ID) (o wire.Object, err error) {
	f, err := os.Open(objectFile(dir, id))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := objfile.NewReader(f)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	typ, _, err := r.Header()
	if err != nil {
		return o, err
	}
	data, err := io.ReadAll(r)
	if err == nil && r.Hash() != id {
		err = fmt.Errorf("object %s is damaged", id)
	}
	return wire.Object{ID: id, Type: typ, Data: data}, err
}

// writeObject writes a loose object as git does.
func writeObject(dir string, o wire.Object) error {
	file := objectFile(dir, o.ID)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	var b bytes.Buffer
	z := objfile.NewWriter(&b)
	err := z.WriteHeader(o.Type, int64(len(o.Data)))
	if err == nil {
		_, err = z.Write(o.Data)
	}
	return errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, b.Bytes(), 0o444))
}

// writeRef sets a ref; the zero id removes it, and the folders that are empty then.
func writeRef(dir, name string, id wire.ID) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if !id.IsZero() {
		lock := file + ".lock" // as git does: who reads meanwhile sees no half of it
		return errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(lock, []byte(id.String()+"\n"), 0o666), os.Rename(lock, file))
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for up := filepath.Dir(file); filepath.Dir(up) != filepath.Join(dir, "refs") && os.Remove(up) == nil; {
		up = filepath.Dir(up)
	}
	packed := filepath.Join(dir, "packed-refs")
	text, err := os.ReadFile(packed)
	if err != nil || !strings.Contains(string(text), " "+name+"\n") {
		return nil //nolint:nilerr // nothing is packed, or another ref
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, " "+name+"\n") {
			kept.WriteString(line)
		}
	}
	return os.WriteFile(packed, []byte(kept.String()), 0o666)
}
