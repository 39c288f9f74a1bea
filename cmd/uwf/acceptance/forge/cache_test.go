package forge

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/cachetest"
)

// newPreparedCI is a repository whose workspaces are prepared; log is told of each time that the
// command runs.
func newPreparedCI(t *testing.T, script string) (c *ci, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "ran")
	command := "mkdir -p node_modules && cp package-lock.json node_modules/lock && echo x >> " + log
	config := strings.TrimSuffix(mockConfig, quickCheck) + fmt.Sprintf("workspace: {prepare: [%q]}\nchecks: {test: test -f node_modules/lock}\n", command)
	return newCI(t, ciOptions{config: config, script: script, files: map[string]string{"package-lock.json": "{}", ".gitignore": "/node_modules/\n"}}), log
}

// solveCached runs a thread in jobs that have a cache.
func (c *ci) solveCached(s *cachetest.Server) {
	c.Helper()
	c.green(c.start(c.forge.PutLabel("alice", c.issue(), "uwf")))
	jobs := c.settle()
	c.green(jobs...)
	for _, j := range c.jobs {
		if log := maskless(j.log); strings.Contains(log, s.Token) || strings.Contains(log, "sig=") {
			c.Errorf("what grants access to the cache is in the log of %s", j)
		}
	}
}

// expectRuns checks how often the command has run.
func (c *ci) expectRuns(log string, want int) {
	c.Helper()
	if got := strings.Count(c.read(log), "x"); got != want {
		c.Errorf("the commands ran %d times, want %d", got, want)
	}
}

// TestCacheOfJobs: what one job prepared, the others and later threads get, for as long as the
// commit is the same; checks find it, too.
func TestCacheOfJobs(t *testing.T) {
	t.Parallel()
	s := cachetest.Start(t)
	c, log := newPreparedCI(t, "")
	c.env = s.Environ(true)
	c.solveCached(s)
	c.expectRuns(log, 1)
	saved := s.Entries()
	keys := slices.Collect(maps.Keys(saved))
	if len(keys) != 1 || !regexp.MustCompile(`^uwf-[0-9a-f]{16}-[0-9a-f]{64}$`).MatchString(keys[0]) {
		t.Fatalf("saved: %q", keys)
	}
	c.solveCached(s)
	c.expectRuns(log, 1)
	c.forge.MustCommit(t, c.forge.Branch(), "Another commit", map[string]string{"new.txt": "1"})
	s.TakeRequests()
	c.solveCached(s)
	c.expectRuns(log, 4) // once in each of its jobs: the key is taken
	if !maps.EqualFunc(s.Entries(), saved, bytes.Equal) || strings.Contains(strings.Join(s.TakeRequests(), "\n"), "Create") {
		t.Error("the entry is another one now, or was tried to be")
	}
	// Another lock file is another key.
	c.forge.MustCommit(t, c.forge.Branch(), "Another lock file", map[string]string{"package-lock.json": "{ }"})
	c.solveCached(s)
	c.expectRuns(log, 5)
	if len(s.Entries()) != 2 {
		t.Errorf("%d entries", len(s.Entries()))
	}
}

// TestNoCacheOfJobs: jobs of a forge of one's own have no cache that uwf asks, and each runs the
// command.
func TestNoCacheOfJobs(t *testing.T) {
	t.Parallel()
	s := cachetest.Start(t)
	c, log := newPreparedCI(t, "")
	c.env = s.Environ(false)
	c.solveCached(s)
	c.expectRuns(log, 3)
	if asked := s.TakeRequests(); len(asked) != 0 {
		t.Errorf("asked: %q", asked)
	}
}

// TestCacheOfOwnImages: what is prepared by an agent's lock file is saved nowhere.
func TestCacheOfOwnImages(t *testing.T) {
	t.Parallel()
	s := cachetest.Start(t)
	script := strings.Replace(plainScript, "write: {", `write: {package-lock.json: "{\"mine\": 1}", `, 1)
	c, log := newPreparedCI(t, script)
	c.env = s.Environ(true)
	c.solveCached(s)
	c.expectRuns(log, 2)
	if saved := s.Entries(); len(saved) != 1 {
		t.Errorf("saved: %q", slices.Collect(maps.Keys(saved)))
	}
}

// TestCacheFails: a cache that is down, or holds no archive, is told of, and no job fails.
func TestCacheFails(t *testing.T) {
	t.Parallel()
	s := cachetest.Start(t)
	c, log := newPreparedCI(t, "")
	c.env = s.Environ(true)
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	told := func(what string) {
		t.Helper()
		for _, j := range c.jobs[len(c.jobs)-3:] {
			if !strings.Contains(j.log, what) {
				t.Errorf("no word of the cache: %s", j)
			}
		}
	}
	c.solveCached(s)
	c.expectRuns(log, 3)
	told("load what was prepared from the cache of Actions: ")
	s.Fail(nil)
	c.solveCached(s)
	c.expectRuns(log, 4)
	for key := range s.Entries() {
		s.Put(key, []byte("no archive"))
	}
	c.solveCached(s)
	c.expectRuns(log, 7)
	told("load what was prepared from the cache of Actions: ")
}
