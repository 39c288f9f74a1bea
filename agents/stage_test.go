package agents

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

func TestOpenStageRefuses(t *testing.T) {
	if _, err := OpenStage("", nil, time.Now); !errors.Is(err, ErrNoContext) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := OpenStage(filepath.Join(t.TempDir(), "none"), nil, time.Now); !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "opening the agent's stage: ") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestStageRefuses(t *testing.T) {
	const none = node.Hash("0000000000000")
	_, x, err := node.New(node.String, "x", time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	folder := func(name string) func(string) error {
		return func(dir string) error { return os.Mkdir(filepath.Join(dir, name), 0o700) }
	}
	nothing := func(string) error { return nil }
	get := func(s *Stage) error { _, err := s.Get(none); return err }
	put := func(payload any) func(*Stage) error {
		return func(s *Stage) error { _, err := s.Put(node.String, payload); return err }
	}
	refused := func(s *Stage) error { _, err := s.Refused(); return err }
	for _, tt := range []struct {
		name   string
		before func(dir string) error
		do     func(*Stage) error
		is     error // nil: any
		says   string
	}{
		{"a node that is not there", nothing, get, node.ErrNotFound, "node 0000000000000: "},
		{"a node that is none", file("0000000000000.json", "{"), get, nil, `staged nodes: "0000000000000.json" is not a node file`},
		{"a payload that is none", nothing, put(math.NaN()), node.ErrPayload, "staging a node of type "},
		{"a payload of another type", nothing, put(7), nil, "staging node "},
		{"a step without a cost", nothing, func(s *Stage) error {
			_, err := s.PutStep(record.Step{Usage: &record.Usage{CostUSD: math.NaN()}})
			return err
		}, node.ErrPayload, "staging the step: "},
		{"before 1970", nothing, func(s *Stage) error {
			s.now = func() time.Time { return time.UnixMilli(-1) }
			return put("x")(s)
		}, node.ErrPayload, "staging node " + string(x) + ": write a node: "},
		{"no file in the making", folder("." + string(x)), put("x"), nil, "staging node " + string(x) + ": open"},
		{"no file", folder(string(x) + ".json"), put("x"), nil, "staging node " + string(x) + ": rename"},
		{"a count that is none", file(refusedFile, strings.Repeat("1", 21)), refused, nil, "counting refused answers: .refused has more than 20 bytes"},
		{"no count", os.Remove, refused, fs.ErrNotExist, "counting refused answers: open"},
	} {
		dir := filepath.Join(t.TempDir(), "stage")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStage(dir, nil, func() time.Time { return time.UnixMilli(1) })
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.before(dir); err != nil {
			t.Fatal(err)
		}
		if err := tt.do(s); err == nil || !strings.HasPrefix(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
