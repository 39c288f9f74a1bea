package consent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	shell   = Demand{Path: "allowShell", Says: "true", Means: "a shell"}
	program = Demand{Path: "agents.a", Says: `{"command":"x"}`, Means: "a program"}
	noon    = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)
)

// TestDigest: what is said counts, and nothing else.
func TestDigest(t *testing.T) {
	want := Digest([]Demand{shell, program})
	if !IsDigest(want) {
		t.Errorf("%q", want)
	}
	for name, c := range map[string]struct {
		demands []Demand
		same    bool
	}{
		"another order":       {[]Demand{program, shell}, true},
		"other explanations":  {[]Demand{{Path: shell.Path, Says: shell.Says, Means: "?"}, program}, true},
		"another value":       {[]Demand{{Path: shell.Path, Says: "false"}, program}, false},
		"another path":        {[]Demand{{Path: "allowshell", Says: "true"}, program}, false},
		"one less":            {[]Demand{shell}, false},
		"one twice":           {[]Demand{shell, program, program}, false},
		"a border moved":      {[]Demand{{Path: "allowShellt", Says: "rue"}, program}, false},
		"one in another":      {[]Demand{{Path: "allowShell", Says: `true"],["agents.a","{\"command\":\"x\"}`}}, false},
		"none":                {nil, false},
		"a byte more in JSON": {[]Demand{shell, {Path: program.Path, Says: program.Says + " "}}, false},
	} {
		if got := Digest(c.demands); (got == want) != c.same {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, s := range []string{"", want[1:], want + "0", strings.ToUpper(want), "z" + want[1:]} {
		if IsDigest(s) {
			t.Errorf("%q is a digest", s)
		}
	}
}

// TestLine: nothing that a terminal obeys, and nothing left out.
func TestLine(t *testing.T) {
	long := strings.Repeat("x", 5000)
	got := Demand{Path: "agents.a", Says: "\"\x1b[2J\u202e" + long + "; rm -rf\"", Means: "m"}.Line()
	if strings.ContainsAny(got, "\x1b\u202e\n") || !strings.Contains(got, long+"; rm -rf") {
		t.Errorf("%.80q", got)
	}
}

func TestDiff(t *testing.T) {
	other := Demand{Path: "agents.a", Says: `{"command":"y"}`, Means: "a program"}
	want := []string{"- " + program.Line(), "  " + shell.Line(), "+ " + other.Line()}
	if got := Diff([]Demand{program, shell}, []Demand{shell, other}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestStore: a consent is for one repository and for exactly what was shown.
func TestStore(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "not", "there")}
	if all, err := s.List(); err != nil || len(all) > 0 || s.Has("/a", nil) {
		t.Errorf("%v %v", all, err)
	}
	demands := []Demand{program, shell}
	for i, repo := range []string{"/b", "/a"} {
		if err := s.Keep(repo, demands, noon.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Keep("/a", demands[:1], noon); err != nil {
		t.Fatal(err)
	}
	if !s.Has("/a", demands) || !s.Has("/a", demands[:1]) || s.Has("/a", demands[1:]) || s.Has("/c", demands) || s.Has("/b", demands[:1]) {
		t.Error("another consent than was given")
	}
	all, err := s.List()
	if err != nil || len(all) != 3 || all[0].Repository != "/a" || len(all[0].Demands) != 2 || all[2].Repository != "/b" {
		t.Errorf("%+v %v", all, err)
	}
	if known := s.Known("/a"); !slices.Equal(known, demands) || s.Known("/c") != nil {
		t.Errorf("%+v", known)
	}
	if err := errors.Join(s.Revoke(all[0]), s.Revoke(all[0])); err != nil || s.Has("/a", demands) || !s.Has("/a", demands[:1]) || !s.Has("/b", demands) {
		t.Errorf("after revoking: %v", err)
	}
	if info, err := os.Stat(s.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestDamaged: what is no consent counts for nothing, and is named.
func TestDamaged(t *testing.T) {
	demands := []Demand{shell}
	for name, damage := range map[string]func(file string) error{
		"cut":   func(file string) error { return os.Truncate(file, 20) },
		"empty": func(file string) error { return os.Truncate(file, 0) },
		"other demands": func(file string) error {
			b, err := os.ReadFile(file)
			return errors.Join(err, os.WriteFile(file, []byte(strings.Replace(string(b), "true", "maybe", 1)), 0o600))
		},
		"another's": func(file string) error {
			return os.Rename(file, filepath.Join(filepath.Dir(file), fileName("/b", Digest(demands))))
		},
		"a folder": func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"huge":     func(file string) error { return os.Truncate(file, maxFile+1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Dir: t.TempDir()}
			if err := s.Keep("/a", demands, noon); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(s.Dir, fileName("/a", Digest(demands)))); err != nil {
				t.Fatal(err)
			}
			if s.Has("/a", demands) || s.Has("/b", demands) {
				t.Error("it counts")
			}
			if all, err := s.List(); err == nil || len(all) > 0 || strings.Contains(err.Error(), "it is not what its name says") != (name == "other demands" || name == "another's") {
				t.Errorf("%v %v", all, err)
			}
			if err := s.Keep("/a", demands, noon); err != nil && name != "a folder" || err == nil && !s.Has("/a", demands) {
				t.Errorf("it can't be given again: %v", err)
			}
		})
	}
}

// TestKeepAtOnce: many who keep the same at once leave one whole consent.
func TestKeepAtOnce(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := s.Keep("/a", []Demand{shell}, noon); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(s.Dir)
	if err != nil || len(entries) != 1 || !s.Has("/a", []Demand{shell}) {
		t.Errorf("%v %v", entries, err)
	}
}

// TestStoreOutOfReach: a folder that can't be used is an error, and consents to nothing.
func TestStoreOutOfReach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "trust"), "nobody's": "/proc/self"} {
		s := Store{Dir: dir}
		if err := s.Keep("/a", []Demand{shell}, noon); err == nil || !strings.Contains(err.Error(), "keep the consent to /a in "+dir) {
			t.Errorf("%s: kept: %v", name, err)
		}
		if s.Has("/a", []Demand{shell}) || s.Allows("/a", shell) {
			t.Errorf("%s: it counts", name)
		}
		if dir == "/proc/self" {
			continue
		}
		if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "list the consents") {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Revoke(Consent{Repository: "/a"}); err == nil || !strings.Contains(err.Error(), "revoke the consent to /a") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
