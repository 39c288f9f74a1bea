package threads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// counting is a remote that counts what is fetched.
type counting struct {
	wire.Remote
	wanted atomic.Int64
}

func (c *counting) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	c.wanted.Add(int64(len(req.Wants)))
	return c.Remote.Fetch(ctx, req)
}

// wants is how many objects fn fetches.
func (c *counting) wants(fn func()) int64 {
	before := c.wanted.Load()
	fn()
	return c.wanted.Load() - before
}

// idAt is a thread id of a time.
func idAt(at time.Time, n int) gitcas.ThreadID {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(at)); err != nil {
		panic(err)
	}
	id[15] = byte(n)
	return gitcas.ThreadID(id.String())
}

// manyDays is how many days a thread ended on, each in a history file of its own.
const manyDays = 60

// history makes a store in which a thread ended on each of many days, and one is
// alive.
func history(t *testing.T) (*counting, *gitcas.Store) {
	t.Helper()
	remote := &counting{Remote: wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})}
	store := gitcas.Open(remote, gitcas.Options{Now: func() time.Time { return clitest.When }})
	for day := range manyDays {
		at := clitest.When.AddDate(0, 0, day-manyDays)
		w := clitest.ThreadWriter{Store: store, ID: idAt(at, day), EndedAt: at.Add(time.Hour)}
		if _, err := w.Write(t.Context(), 0, true); err != nil {
			t.Fatal(err)
		}
	}
	w := clitest.ThreadWriter{Store: store, ID: idAt(clitest.When, 1)}
	if _, err := w.Write(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	return remote, store
}

func resolve(t *testing.T, store *gitcas.Store, arg string) (gitcas.ThreadID, error) {
	t.Helper()
	ref, err := lookup.Parse(arg)
	if err != nil {
		return "", err
	}
	return ref.ID(t.Context(), store)
}

// Looking a thread up reads as much of the history as it has to, not all of it.
func TestLookupReadsLittle(t *testing.T) {
	remote, store := history(t)
	load := remote.wants(func() {
		if _, err := store.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	alive, late, early := idAt(clitest.When, 1), idAt(clitest.When.AddDate(0, 0, -3), manyDays-3), idAt(clitest.When.AddDate(0, 0, -manyDays), 0)
	for _, tt := range []struct {
		what, arg string
		want      gitcas.ThreadID
		most      int64 // objects beyond those of a Load
	}{
		{"a whole id is taken as it is", string(alive), alive, -load},
		{"a live thread needs no history", string(alive[:10]), alive, 0},
		{"in small letters", strings.ToLower(string(alive[:12])), alive, 0},
		{"the latest is alive", "@latest", alive, 4},
		{"one that ended lately", string(late[:12]), late, 8},
		{"one of the first day", string(early[:12]), early, manyDays + 4},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var got gitcas.ThreadID
			var err error
			n := remote.wants(func() { got, err = resolve(t, store, tt.arg) })
			if err != nil || got != tt.want {
				t.Errorf("%s is %s, %v; want %s", tt.arg, got, err, tt.want)
			}
			if n-load > tt.most {
				t.Errorf("%s fetches %d objects beyond the %d of a load, want at most %d", tt.arg, n-load, load, tt.most)
			}
		})
	}
}

// The latest thread is the one that was started last, though it may have ended
// before others that were started earlier.
func TestLatest(t *testing.T) {
	store := gitcas.Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), gitcas.Options{Now: func() time.Time { return clitest.When }})
	if _, err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(t, store, "@latest"); err == nil || !strings.Contains(err.Error(), "no thread yet") {
		t.Errorf("an empty store: %v", err)
	}
	day := func(n int) time.Time { return clitest.When.AddDate(0, 0, -n) }
	for i, th := range []struct{ started, ended time.Time }{
		{day(9), day(1)}, // started first, ended last
		{day(3), day(2)}, // the latest
		{day(5), day(4)},
	} {
		w := clitest.ThreadWriter{Store: store, ID: idAt(th.started, i), EndedAt: th.ended}
		if _, err := w.Write(t.Context(), 0, true); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := resolve(t, store, "@latest"); err != nil || got != idAt(day(3), 1) {
		t.Errorf("%s, %v; want %s", got, err, idAt(day(3), 1))
	}
	// One that is alive and older is not it.
	w := clitest.ThreadWriter{Store: store, ID: idAt(day(4), 7)}
	if _, err := w.Write(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	if got, err := resolve(t, store, "@latest"); err != nil || got != idAt(day(3), 1) {
		t.Errorf("with one alive: %s, %v; want %s", got, err, idAt(day(3), 1))
	}
}

func FuzzThreadArgument(f *testing.F) {
	for _, s := range []string{"", "@latest", "01JY", "01jy0000000000000000000000", "8", "01JY:2", ":", "01JY:-1", "7VQ43ZSJTEWA7", "\x1b[2J", "../..", "01JU", fmt.Sprint("0", strings.Repeat("1", 40))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		_, err := lookup.Parse(arg)
		_, stepErr := lookup.ParseStep(arg)
		for _, err := range []error{err, stepErr} {
			if err != nil && !errors.As(err, new(*app.UsageError)) {
				t.Errorf("%q: %v", arg, err)
			}
		}
		if err == nil && strings.ContainsAny(arg, "./:\\ \x1b") {
			t.Errorf("%q is taken for an id", arg)
		}
	})
}
