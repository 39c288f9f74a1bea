package text

import (
	"testing"
	"time"
	_ "time/tzdata" // the machine may have none
)

func TestTimeIn(t *testing.T) {
	for _, x := range []struct{ zone, at, want string }{
		{"UTC", "2026-06-04T12:00:05Z", "2026-06-04 12:00:05 UTC"},
		{"UTC", "2026-06-04T12:00:05+02:00", "2026-06-04 10:00:05 UTC"},
		{"Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25 02:30:00 CEST"},
		{"Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25 02:30:00 CET"},
		{"America/New_York", "2026-03-08T06:59:59Z", "2026-03-08 01:59:59 EST"},
		{"America/New_York", "2026-03-08T07:00:00Z", "2026-03-08 03:00:00 EDT"},
		{"America/Sao_Paulo", "2027-01-01T01:00:00Z", "2026-12-31 22:00:00 -03"},
		{"Asia/Kathmandu", "2026-12-31T20:00:00Z", "2027-01-01 01:45:00 +0545"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := TimeIn(at, zone); got != x.want {
			t.Errorf("%s in %s: %s, want %s", x.at, x.zone, got, x.want)
		}
		if got, want := Time(at.In(zone)), TimeIn(at, time.UTC); got != want {
			t.Errorf("%s: %s, want %s", x.at, got, want)
		}
	}
}
