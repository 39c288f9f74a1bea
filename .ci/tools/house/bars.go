package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// bar bounds a value: by what holds now, and by the goal that it is to reach.
type bar struct {
	name, sense       string // sense is "<=" or ">="
	now, goal         float64
	nowText, goalText string
}

func (b bar) holds(value float64) bool   { return b.compare(value, b.now) }
func (b bar) reached(value float64) bool { return b.compare(value, b.goal) }

func (b bar) compare(value, bound float64) bool {
	if b.sense == "<=" {
		return value <= bound
	}
	return value >= bound
}

// readBars reads bars: a line each, of a name, a sense, the bound that holds now, and the
// goal where that is another one. "#" begins a comment.
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
		if len(words) == 3 {
			words = append(words, words[2])
		}
		wrong := fmt.Errorf("%s:%d: not a name, <= or >=, a bound and a goal: %q", file, n+1, line)
		if len(words) != 4 || words[1] != "<=" && words[1] != ">=" {
			return nil, wrong
		}
		b := bar{name: words[0], sense: words[1], nowText: words[2], goalText: words[3]}
		if !slices.Contains(valueNames(), b.name) {
			return nil, fmt.Errorf("%s:%d: nothing is measured that is called %q", file, n+1, b.name)
		}
		var nowErr, goalErr error
		b.now, nowErr = strconv.ParseFloat(b.nowText, 64)
		b.goal, goalErr = strconv.ParseFloat(b.goalText, 64)
		if nowErr != nil || goalErr != nil {
			return nil, wrong
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, fmt.Errorf("%s holds no bars", file)
	}
	return bars, nil
}
