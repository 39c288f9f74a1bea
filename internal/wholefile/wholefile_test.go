package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	for _, text := range []string{"one", "another"} {
		if err := Write(file, strings.NewReader(text), 0o640); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || string(b) != text || info.Mode().Perm() != 0o640 {
			t.Errorf("%q, %v, %v, %v", b, info.Mode(), err, statErr)
		}
	}
	broken := errors.New("cut off")
	if err := Write(file, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0o600); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := Write(dir, strings.NewReader("x"), 0o600); err == nil {
		t.Error("a folder was written over")
	}
	if err := Write(filepath.Join(dir, "none", "a"), strings.NewReader("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if b, readErr := os.ReadFile(file); err != nil || readErr != nil || len(left) != 1 || string(b) != "another" {
		t.Errorf("%v, %q, %v, %v", left, b, err, readErr)
	}
}
