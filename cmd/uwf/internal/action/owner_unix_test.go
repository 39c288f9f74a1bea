//go:build unix

package action

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHandOverOwner: in a container, whoever owns the workspace can upload what is there.
func TestHandOverOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	k, workspace := keeping(t)
	mustDo(t, os.Chown(workspace, 4711, 4711), k.Write(sealedStep(t, keptStore, keptThread)), k.handOver(t.Context(), workspace), giveBack(workspace))
	info, err := os.Lstat(filepath.Join(workspace, handedOverPath(k)))
	mustDo(t, err)
	if has, ok := info.Sys().(*syscall.Stat_t); !ok || has.Uid != 4711 {
		t.Errorf("it is %+v's", has)
	}
}
