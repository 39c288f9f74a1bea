package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// bar bounds a value.
type bar struct {
	name, sense string // sense is "<=" or ">="
	bound       float64
	text        string // of the bound
}

func (b bar) holds(value float64) bool {
	if b.sense == "<=" {
		return value <= b.bound
	}
	return value >= b.bound
}

// readBars reads bars: a line each, of a name, a sense and a bound. "#" begins a comment.
func readBars(file string) ([]bar, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var bars []bar
	for n, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		wrong := fmt.Errorf("%s:%d: not a name, <= or >=, and a bound: %q", file, n+1, line)
		if len(words) != 3 || words[1] != "<=" && words[1] != ">=" {
			return nil, wrong
		}
		b := bar{name: words[0], sense: words[1], text: words[2]}
		if !slices.Contains(valueNames(), b.name) {
			return nil, fmt.Errorf("%s:%d: nothing is measured that is called %q", file, n+1, b.name)
		}
		if b.bound, err = strconv.ParseFloat(b.text, 64); err != nil {
			return nil, wrong
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, fmt.Errorf("%s holds no bars", file)
	}
	return bars, nil
}
