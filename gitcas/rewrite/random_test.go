package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/testmode"
)

// TestRandom grows stores at random, out of few texts, so that many nodes become
// equal when the texts go, and takes the texts out, also in the middle of it all.
func TestRandom(t *testing.T) {
	for seed := range testmode.Seeds(t, 8, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { random(t, seed) })
	}
}

func random(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	f := memory(t)
	texts := []string{"secret-number-one", "secret-number-two", "[purged]", "plain", "x secret-number-one y", "a [purged] b"}
	pick := func() string { return texts[rnd.IntN(len(texts))] }
	var alive []gitcas.ThreadID
	next := 1
	for range 30 {
		any := func() gitcas.ThreadID { return alive[rnd.IntN(len(alive))] }
		switch op := rnd.IntN(12); {
		case len(alive) == 0 || op == 0:
			f.plain[id(next)] = rnd.IntN(4) == 0
			f.start(id(next), pick())
			alive = append(alive, id(next))
			next++
		case op == 1 && len(alive) < 6:
			f.fork(id(next), any())
			alive = append(alive, id(next))
			next++
		case op == 2:
			i := rnd.IntN(len(alive))
			f.end(alive[i], "cancelled", pick())
			alive = append(alive[:i], alive[i+1:]...)
		case op == 3 && rnd.IntN(3) == 0:
			f.purge(f.options(finder(t, "secret-number-two")))
		case op == 4:
			f.answer(any(), pick())
		case op == 5:
			f.retried(any(), pick(), pick())
		default:
			f.step(any(), note(pick()), pick(), pick())
		}
	}
	o := f.options(finder(t, "secret-number-one", "secret-number-two"))
	f.purge(o)
	f.sound()
	f.nowhere("secret-number-one", "secret-number-two")
	for _, id := range alive {
		f.step(id, note("goes on"), pick(), "d")
	}
	f.purge(o)
	f.sound()
	_, commits := f.log()
	for _, c := range commits {
		if strings.Contains(c.Message, "secret-number") {
			t.Errorf("message %q", c.Message)
		}
	}
}
