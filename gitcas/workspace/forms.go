package workspace

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/convert"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

const gitattributes = ".gitattributes"

// forms says in which form the files of a commit lie in a folder: as the commit's own
// .gitattributes files say.
type forms struct {
	rd   *reader
	most limits
	in   map[string]*ignore.Attributes // by the path of a folder that has a .gitattributes
	buf  []byte                        // of the file that is being written
}

// isAttributes reports whether an entry is a .gitattributes that git reads.
func isAttributes(e *memtree.Entry) bool { return e.Name == gitattributes && memtree.IsFile(e.Mode) }

// newForms reads the .gitattributes files of a tree from its texts. It refuses those that are
// too large (ErrLimit).
func newForms(rd *reader, most limits, tree *memtree.Dir, texts map[wire.ID]string) (*forms, error) {
	f := &forms{rd: rd, most: most, in: make(map[string]*ignore.Attributes)}
	for path, e := range tree.FilesThat(isAttributes) {
		if _, read := texts[e.ID]; !read {
			continue
		}
		folder, _ := rooted.SplitPath(path)
		if err := f.addFolder(folder, path, texts[e.ID]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// newAttributes are those above the top folder.
func newAttributes(most limits) *ignore.Attributes {
	return ignore.NewAttributes(most.ignoreSteps, convert.Attributes...)
}

// addFolder adds a .gitattributes; those above it were added before.
func (f *forms) addFolder(folder, path, text string) error {
	if len(text) > ignore.MaxFile {
		return largeRules(f.rd.op, path)
	}
	above := f.attributesIn(folder)
	if above == nil {
		above = newAttributes(f.most)
	}
	own, err := above.Folder(folder, []byte(text))
	f.in[folder] = own
	return f.rd.rulesError(gitattributes, err)
}

// attributesIn returns the attributes that hold in a folder, nil without any.
func (f *forms) attributesIn(folder string) *ignore.Attributes {
	for len(f.in) > 0 {
		if a := f.in[folder]; a != nil || folder == "" {
			return a
		}
		folder, _ = rooted.SplitPath(folder)
	}
	return nil
}

// formOf returns the form of a file.
func (f *forms) formOf(path string) (convert.Form, error) {
	folder, _ := rooted.SplitPath(path)
	return f.rd.formOf(f.attributesIn(folder), path)
}

// formOf returns the form of a file, by the attributes of its folder.
func (rd *reader) formOf(attributes *ignore.Attributes, path string) (convert.Form, error) {
	if attributes == nil {
		return convert.Form{}, nil
	}
	found, err := attributes.Lookup(path)
	return convert.FormOf(found), rd.rulesError(gitattributes, err)
}

// toFolder returns what a blob of the commit is in a folder. A blob that can't be converted is
// the same there; so is one that would be over the limit of a snapshot.
func (f *forms) toFolder(path string, mode filemode.FileMode, blob []byte) ([]byte, error) {
	if !memtree.IsFile(mode) || int64(len(blob)) > f.most.file {
		return blob, nil
	}
	form, err := f.formOf(path)
	if err != nil {
		return nil, err
	}
	file, err := form.ToFolder(blob, &f.buf)
	if err != nil || int64(len(file)) > f.most.file {
		return blob, nil //nolint:nilerr // what can't be converted stays as it is
	}
	return file, nil
}

// isStored reports whether a file of a folder that has that content, which differs from
// the blob, becomes the blob in a commit. It returns the blob then.
func (f *forms) isStored(path string, file []byte, blob wire.ID) (data []byte, same bool, err error) {
	form, err := f.formOf(path)
	if err != nil || form == (convert.Form{}) {
		return nil, false, err
	}
	data, err = form.ToGit(file, func() bool { return false })
	return data, err == nil && memtree.BlobID(data) == blob, nil
}

// checkFilter refuses a content that git would put through a filter first.
func checkFilter(op, path string, form convert.Form, data []byte) error {
	if form.IsStored(data) {
		return nil
	}
	return rooted.NewError(ErrFilter, op, path, "its attributes say filter=%s: agents may not change it, a person has to commit it", clipText(form.Filter))
}

// fetchAndPut fetches blobs of a commit and writes them at the cursor. It returns their bytes.
func (f *forms) fetchAndPut(cur *rooted.Cursor, load *loader, commit wire.ID, writes []write, step func(op, path string) error) (int64, error) {
	ids := make(map[wire.ID]bool, len(writes))
	for _, x := range writes {
		ids[x.e.ID] = true
	}
	blobs, err := load.fetchBlobs(f.rd.ctx, f.rd.op, commit, ids)
	if err != nil {
		return 0, err
	}
	for _, x := range writes {
		if err := f.rd.ctx.Err(); err != nil {
			return 0, err
		}
		if err := f.putBlob(cur, x, blobs[x.e.ID].Data, step); err != nil {
			return 0, err
		}
	}
	return blobs.Size(), nil
}

// putBlob writes a blob in the form that it has in a folder.
func (f *forms) putBlob(cur *rooted.Cursor, x write, blob []byte, step func(op, path string) error) error {
	file, err := f.toFolder(x.path, x.e.Mode, blob)
	if err != nil {
		return err
	}
	x.e.Size = int64(len(file))
	x.e.Stamp, err = cur.PutFile(x.path, x.e.Mode, file, step)
	return err
}

// readForms reads those .gitattributes files of a commit that are wanted, from the folder at the
// cursor if they are there.
func readForms(
	cur *rooted.Cursor, rd *reader, most limits, load *loader, commit wire.ID, tree *memtree.Dir, wanted func(path string, e *memtree.Entry) bool,
) (*forms, error) {
	from := textReader{rd: rd, load: load, commit: commit, texts: make(map[wire.ID]string)}
	texts, err := from.readTexts(rd.ctx, cur, tree, wanted)
	if err != nil {
		return nil, err
	}
	return newForms(rd, most, tree, texts)
}

// textReader gets small files and links of a commit: from what was fetched, from the folder
// at the cursor, and the others from the remote in one request.
type textReader struct {
	rd     *reader
	load   *loader
	commit wire.ID
	texts  map[wire.ID]string
}

// readTexts returns the contents of the wanted ones of a tree's texts by their ids.
func (r *textReader) readTexts(ctx context.Context, cur *rooted.Cursor, tree *memtree.Dir, wanted func(path string, e *memtree.Entry) bool) (map[wire.ID]string, error) {
	missing := make(map[wire.ID]bool)
	for path, e := range tree.FilesThat(isText) {
		if wanted(path, e) && !r.textAtHand(cur, path, e) {
			missing[e.ID] = true
		}
	}
	blobs, err := r.load.fetchBlobs(ctx, r.rd.op, r.commit, missing)
	for id, o := range blobs {
		r.texts[id] = string(o.Data)
	}
	return r.texts, errors.Join(err, cur.CloseAll())
}

// textAtHand looks for a text without asking the remote. Whatever is wrong with the folder
// shows when it is compared.
func (r *textReader) textAtHand(cur *rooted.Cursor, path string, e *memtree.Entry) bool {
	if _, ok := r.texts[e.ID]; ok {
		return true
	}
	if _, ok := r.load.objects[e.ID]; ok {
		return false // fetchBlobs finds it there
	}
	c, err := r.rd.readPath(cur, path, sizes{hash: ignore.MaxFile, keep: ignore.MaxFile})
	if err != nil || c.size > ignore.MaxFile {
		return false
	}
	data := c.data
	if c.id != e.ID { // it may have attributes itself
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		if memtree.BlobID(data) != e.ID {
			return false
		}
	}
	r.texts[e.ID] = string(data)
	return true
}
