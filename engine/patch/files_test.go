package patch

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// TestFiles: the old version of a file is read from the remote; of what is too large, or
// is not compared, it is not read.
func TestFiles(t *testing.T) {
	blob := func(data string) wire.PackObject {
		return wire.PackObject{Object: wire.NewObject(plumbing.BlobObject, []byte(data))}
	}
	old, module := plumbing.NewHash(strings.Repeat("4", 40)), plumbing.NewHash(strings.Repeat("5", 40))
	text, binary := blob("new\n"), blob("\x00")
	unread := plumbing.NewHash(strings.Repeat("6", 40))
	var asked []wire.ID
	files, err := CollectFiles([]wire.PackObject{text, binary}, []workspace.Change{
		{Path: "a", Kind: workspace.Modified, Old: old, Blob: text.ID, Size: 4},
		{Path: "bin", Kind: workspace.Modified, Old: unread, Blob: binary.ID, Size: 1},
		{Path: "big", Kind: workspace.Modified, Old: unread, Blob: unread, Size: MaxText + 1},
		{Path: "restored", Kind: workspace.Deleted, Old: unread, OldData: []byte{}, Blob: unread},
		{Path: "sub", Kind: workspace.Deleted, Old: module, OldMode: filemode.Submodule, Blob: module},
	}, func(ids []wire.ID) (map[wire.ID][]byte, error) {
		asked = ids
		return map[wire.ID][]byte{old: []byte("old\n")}, nil
	})
	if err != nil || string(files[0].Old.Data) != "old\n" || files[3].Old.Data == nil || string(files[4].Old.Data) != "Subproject commit "+module.String()+"\n" || !files[4].New.ID.IsZero() {
		t.Errorf("%v, %v", files, err)
	}
	if !slices.Equal(asked, []wire.ID{old}) {
		t.Errorf("%v were read, want %v", asked, old)
	}
}
