package program

import (
	"runtime"
	"testing"
)

func TestReadBuild(t *testing.T) {
	b := ReadBuild("v1.2.3", "abc")
	if want := (Build{Version: "v1.2.3", Commit: "abc", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}); b != want {
		t.Errorf("a release: %+v, want %+v", b, want)
	}
	if b := ReadBuild("", ""); b.Version == "" {
		t.Errorf("another build has no version: %+v", b)
	}
}
