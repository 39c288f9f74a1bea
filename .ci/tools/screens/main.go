// Command screens draws the golden screens of the tests as SVG, for the README and docs/.
//
//	go run . [-check] SCREENS DRAWN
//
// SCREENS is the folder of the golden files: text with SGR sequences. DRAWN is the folder that
// gets one .svg for each. With -check nothing is written: what would change is named, with exit
// code 1.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func main() {
	check := flag.Bool("check", false, "write nothing: name what would change")
	flag.Parse()
	if err := drawAll(flag.Args(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

func drawAll(args []string, check bool) error {
	if len(args) != 2 {
		return errors.New("usage: screens [-check] SCREENS DRAWN")
	}
	files, err := filepath.Glob(filepath.Join(args[0], "*.txt"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no screens", args[0])
	}
	var wanted []string
	for _, file := range files {
		screen, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt") + ".svg"
		wanted = append(wanted, name)
		drawn, err := drawScreen(string(screen))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := keepPicture(filepath.Join(args[1], name), drawn, check); err != nil {
			return err
		}
	}
	old, err := filepath.Glob(filepath.Join(args[1], "*.svg"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if slices.Contains(wanted, filepath.Base(file)) {
			continue
		}
		if check {
			return fmt.Errorf("%s shows a screen that is gone: .ci/screens", file)
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// keepPicture writes a picture, or reports that it is another one than is there.
func keepPicture(file string, drawn []byte, check bool) error {
	if !check {
		return os.WriteFile(file, drawn, 0o644)
	}
	is, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(is, drawn) {
		return fmt.Errorf("%s is not what the golden screen shows: .ci/screens draws it anew", file)
	}
	return nil
}

// The terminal, in pixels.
const (
	columns    = 80
	cellWidth  = 8
	lineHeight = 18
	margin     = 14
	fontSize   = 13
)

// The colours of a dark terminal, of which the sixteen named ones come first.
const (
	front = "#d0d7de"
	back  = "#161b22"
)

func namedColours() []string {
	return []string{
		"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
		"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
	}
}

// pen is how a run of characters is written.
type pen struct {
	bold, faint, reverse bool
	front                string
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// drawScreen makes the picture of a screen.
func drawScreen(screen string) ([]byte, error) {
	lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	width, height := columns*cellWidth+2*margin, len(lines)*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", back)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d" fill="%s" xml:space="preserve">`+"\n", fontSize, front)
	for i, line := range lines {
		if err := drawLine(&b, line, margin+(i+1)*lineHeight-lineHeight/4); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes(), nil
}

func drawLine(b *bytes.Buffer, line string, y int) error {
	var p pen
	column, at := 0, 0
	write := func(s string) {
		if strings.TrimSpace(s) != "" || p.reverse {
			drawRun(b, s, column, y, p)
		}
		column += utf8.RuneCountInString(s)
	}
	for _, m := range sgr.FindAllStringSubmatchIndex(line, -1) {
		write(line[at:m[0]])
		at = m[1]
		if err := p.obey(line[m[2]:m[3]]); err != nil {
			return err
		}
	}
	write(line[at:])
	if strings.Contains(line[at:], "\x1b") {
		return errors.New("a sequence that is no SGR")
	}
	return nil
}

// drawRun draws what is written with one pen. Its length is fixed, so that columns stay columns
// in every font.
func drawRun(b *bytes.Buffer, s string, column, y int, p pen) {
	n := utf8.RuneCountInString(s)
	x, style := margin+column*cellWidth, ""
	if p.reverse {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x, y-lineHeight*3/4, n*cellWidth, lineHeight, cmp.Or(p.front, front))
		style += ` fill="` + back + `"`
	} else if p.front != "" {
		style += ` fill="` + p.front + `"`
	}
	if p.bold {
		style += ` font-weight="bold"`
	}
	if p.faint {
		style += ` opacity="0.65"`
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d"%s>%s</text>`+"\n", x, y, n*cellWidth, style, escapeText(s))
}

// escapeText writes text for XML. Spaces are hard ones: a viewer that heeds no xml:space would join
// those at the beginning of a run.
func escapeText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", " ", "\u00a0").Replace(s)
}

// obey changes the pen by the arguments of an SGR sequence, as the terminal of the tests writes
// them. Backgrounds and what else there is are none of its screens'.
func (p *pen) obey(args string) error {
	codes := strings.Split(args, ";")
	for i := 0; i < len(codes); i++ {
		n, err := strconv.Atoi(codes[i])
		if err != nil {
			return fmt.Errorf("SGR %q", args)
		}
		switch {
		case n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.faint = true
		case n == 3, n == 4:
		case n == 7:
			p.reverse = true
		case n >= 30 && n <= 37:
			p.front = namedColours()[n-30]
		case n >= 90 && n <= 97:
			p.front = namedColours()[n-90+8]
		case n == 38 && i+2 < len(codes) && codes[i+1] == "5":
			if p.front, err = indexedColour(codes[i+2]); err != nil {
				return err
			}
			i += 2
		default:
			return fmt.Errorf("SGR %q", args)
		}
	}
	return nil
}

// indexedColour is one of the 256 colours of terminals: the named ones, a cube of 6×6×6, and greys.
func indexedColour(code string) (string, error) {
	n, err := strconv.Atoi(code)
	switch {
	case err != nil || n < 0 || n > 255:
		return "", fmt.Errorf("colour %q", code)
	case n < 16:
		return namedColours()[n], nil
	case n >= 232:
		grey := 8 + (n-232)*10
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey), nil
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + n*40
	}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6)), nil
}
