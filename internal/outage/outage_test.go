package outage

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// clock stands still, but for what is slept.
type clock struct {
	now   time.Time
	slept []time.Duration
}

func (c *clock) policy() Policy {
	return Policy{
		Now: func() time.Time { return c.now }, Jitter: func() float64 { return 0 },
		Sleep: func(_ context.Context, d time.Duration) error {
			c.now, c.slept = c.now.Add(d), append(c.slept, d)
			return nil
		},
	}
}

var errDown = errors.New("down")

// waits lists what is waited until it is given up.
func waits(ctx context.Context, t *testing.T, p Policy, c *clock, after time.Duration) (slept []time.Duration, err error) {
	t.Helper()
	o := p.Begin()
	for range 1000 {
		if err := o.WaitToRetry(ctx, errDown, after); err != nil {
			return c.slept, err
		}
	}
	t.Fatal("it is waited for ever")
	return nil, nil
}

func TestWaitsGrow(t *testing.T) {
	c := &clock{}
	slept, err := waits(t.Context(), t, c.policy(), c, 0)
	for i, want := range []int{2, 4, 8, 16, 32, 60, 60, 60} {
		if got := int(slept[i].Seconds()); got != want {
			t.Errorf("wait %d takes %d s, want %d", i, got, want)
		}
	}
	if sum := c.now.Sub(time.Time{}); sum > Patience || sum < Patience-MostWait {
		t.Errorf("%s are waited in all, want about %s", sum, Patience)
	}
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "given up after") {
		t.Errorf("the error is %v", err)
	}
}

func TestJitterSpreadsWaits(t *testing.T) {
	c := &clock{}
	p := c.policy()
	p.Jitter = func() float64 { return 0.5 }
	if err := p.Begin().WaitToRetry(t.Context(), errDown, 0); err != nil || c.slept[0] != 2500*time.Millisecond {
		t.Errorf("the first wait takes %v (%v), want 2.5s", c.slept, err)
	}
}

func TestDeadlineEndsWaits(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	p := c.policy()
	p.Until = c.now.Add(25 * time.Minute)
	if _, err := waits(t.Context(), t, p, c, 0); err == nil || c.now.After(p.Until) || c.now.Before(p.Until.Add(-2*MostWait)) {
		t.Errorf("given up at %s (%v), want shortly before %s", c.now, err, p.Until)
	}
}

func TestPatienceOfOnesOwn(t *testing.T) {
	c := &clock{}
	p := c.policy()
	p.For = time.Minute
	o := p.Begin()
	for _, want := range []int{2, 6, 14, 30} {
		if err := o.WaitToRetry(t.Context(), errDown, 0); err != nil || o.Lasted() != time.Duration(want)*time.Second {
			t.Errorf("after %s: %v, want %d s", o.Lasted(), err, want)
		}
	}
	if err := o.WaitToRetry(t.Context(), errDown, 0); err == nil || !strings.Contains(err.Error(), "given up after 30s and 5 tries") {
		t.Errorf("%v", err)
	}
}

func TestServersWaitGoesBefore(t *testing.T) {
	c := &clock{}
	slept, err := waits(t.Context(), t, c.policy(), c, 4*time.Minute)
	if len(slept) != 2 || slept[0] != 4*time.Minute {
		t.Errorf("waits of %v, want two of four minutes", slept)
	}
	if err == nil || !strings.Contains(err.Error(), "asks to wait for 4m0s") {
		t.Errorf("the error is %v", err)
	}
}

func TestHurryWaitsForNothing(t *testing.T) {
	c := &clock{}
	ctx := WithHurry(t.Context(), func() bool { return true })
	p := c.policy()
	p.Tell = func(w Wait) { t.Errorf("told after an interrupt: %s", w) }
	if err := p.Begin().WaitToRetry(ctx, errDown, time.Minute); err != nil || c.slept[0] > time.Second {
		t.Errorf("after an interrupt %v are waited (%v)", c.slept, err)
	}
}

func TestEndedContextIsNotWaitedFor(t *testing.T) {
	c := &clock{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.policy().Begin().WaitToRetry(ctx, errDown, 0); !errors.Is(err, errDown) || len(c.slept) > 0 {
		t.Errorf("%v are waited, and the error is %v", c.slept, err)
	}
}

func TestWaitsAreTold(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)}
	p := c.policy()
	var said []string
	p.Tell = func(w Wait) { said = append(said, w.String()) }
	if err := p.Begin().WaitToRetry(t.Context(), errDown, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if want := "down; trying again in 30s, until 18:10:00 UTC"; len(said) != 1 || said[0] != want {
		t.Errorf("told %q, want %q", said, want)
	}
}

// TestRealClock waits by the machine's clock, with a deadline that has passed.
func TestRealClock(t *testing.T) {
	if err := (Policy{Until: time.Now()}).Begin().WaitToRetry(t.Context(), errDown, 0); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if err := Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "30": 30 * time.Second, "0": 0, "-5": 0, "soon": 0, "99999999999999": 0, "1.5": 1500 * time.Millisecond, "NaN": 0,
		"Mon, 23 Nov 2026 18:01:00 GMT": time.Minute, "Mon, 23 Nov 2026 17:00:00 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("Retry-After: %s means %s, want %s", value, got, want)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, now); got != 1500*time.Millisecond {
		t.Errorf("1500 milliseconds mean %s", got)
	}
}
