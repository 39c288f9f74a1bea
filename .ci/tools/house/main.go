// Command house measures how large the house is and how its parts are named, and holds it to
// the bars that are written down in a file.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	root := flag.String("C", ".", "the module's `FOLDER`")
	bars := flag.String("bars", "", "`FILE` with the bars; empty: only print")
	worst := flag.Int("worst", 0, "list so many of the largest packages and receivers, and of the packages with most one-word names")
	flag.Parse()
	if err := run(*root, *bars, *worst, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(root, barsFile string, worst int, out io.Writer) error {
	h, err := measure(root)
	if err != nil {
		return err
	}
	values := h.values()
	if worst > 0 {
		h.writeWorst(out, worst)
	}
	if barsFile == "" {
		for _, name := range valueNames() {
			fmt.Fprintf(out, "%-22s %10.6g\n", name, values[name])
		}
		return nil
	}
	bars, err := readBars(barsFile)
	if err != nil {
		return err
	}
	broken := 0
	for _, b := range bars {
		value := values[b.name]
		note := ""
		if !b.holds(value) {
			note = "  broken"
			broken++
		}
		fmt.Fprintf(out, "%-22s %10.6g  %s %s%s\n", b.name, value, b.sense, b.text, note)
	}
	if broken > 0 {
		return fmt.Errorf("%d of the bars in %s are broken", broken, barsFile)
	}
	return nil
}
