package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	got, err := drawScreen("$ a <b> & c\n\x1b[0;1mbold\x1b[0m x\x1b[0;32mgreen \x1b[0;38;5;212mpink\x1b[0m \x1b[0;7m \x1b[0m\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`textLength="88">$` + "\u00a0a\u00a0&lt;b&gt;\u00a0&amp;\u00a0c</text>", // one cell a character
		`font-weight="bold">bold</text>`,
		`x="62" y="46" textLength="48" fill="#3fb950">green` + "\u00a0</text>", // behind "bold x", on the second line
		`fill="#ff87d7">pink</text>`,
		`<rect x="150" y="33" width="8"`, // the cursor
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	for _, bad := range []string{"\x1b[31;1zx", "\x1b[0;99m", "\x1b[38;5;300mx", "a\x1b"} {
		if got, err := drawScreen(bad); err == nil {
			t.Errorf("%q is drawn:\n%s", bad, got)
		}
	}
}

func TestCheck(t *testing.T) {
	screens, drawn := t.TempDir(), t.TempDir()
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(screens, "a.txt"), "$ uwf\n")
	args := []string{screens, drawn}
	if err := drawAll(args, true); err == nil {
		t.Error("a picture that is not there is right")
	}
	write(filepath.Join(drawn, "gone.svg"), "<svg/>")
	if err := drawAll(args, false); err != nil {
		t.Fatal(err)
	}
	if err := drawAll(args, true); err != nil {
		t.Error(err)
	}
	write(filepath.Join(screens, "a.txt"), "$ uwf run\n")
	if err := drawAll(args, true); err == nil {
		t.Error("an old picture is right")
	}
	if err := drawAll(args, false); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(drawn, "b.svg"), "<svg/>")
	if err := drawAll(args, true); err == nil {
		t.Error("a picture of no screen is right")
	}
	if err := drawAll([]string{t.TempDir(), drawn}, true); err == nil {
		t.Error("no screens are right")
	}
}
