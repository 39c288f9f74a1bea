package app

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have none

	"github.com/united-workforce/uwf/internal/text"
)

// timesIn is a Factory of somebody in a zone.
func timesIn(zone string) *Factory {
	f := NewAt(".", []string{"TZ=" + zone}, IO{})
	f.Now = func() time.Time { return time.Date(2026, 11, 27, 9, 12, 0, 0, time.UTC) }
	return f
}

// What has no zone is local; what has one is not.
func TestParseTime(t *testing.T) {
	for _, x := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-07-01", "2026-06-30T22:00:00Z"},
		{":Europe/Berlin", "2026-01-01 12:00", "2026-01-01T11:00:00Z"},
		{"Europe/Berlin", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"},
		{"Europe/Berlin", "2026-01-01T12:00:00-05:00", "2026-01-01T17:00:00Z"},
		{"Europe/Berlin", "2026-01-01 12:00:00 UTC", "2026-01-01T12:00:00Z"},
		{"Europe/Berlin", "2026-10-25 02:30:00 CEST", "2026-10-25T00:30:00Z"},
		{"Europe/Berlin", "2026-10-25 02:30:00 CET", "2026-10-25T01:30:00Z"},
		{"Europe/Berlin", "2026-10-25 02:30 CET", "2026-10-25T01:30:00Z"},
		{"Europe/Berlin", "2026-07-01 12:00:00 EST", ""}, // which of them?
		{"Europe/Berlin", "2026-07-01 12:00:00 +0545", "2026-07-01T06:15:00Z"},
		{"America/New_York", "2026-07-01T12:00", "2026-07-01T16:00:00Z"},
		{"America/New_York", "1h", "2026-11-27T08:12:00Z"},
		{"Nowhere/Else", "2026-07-01", "2026-07-01T00:00:00Z"},
		{"", "2026-07-01", "2026-07-01T00:00:00Z"},
		{"UTC", "2026-07-01 12:00:00 CET", ""},
	} {
		at, err := ParseTime("--after", x.text, LocalNow(timesIn(x.zone)))
		if got := at.UTC().Format(time.RFC3339); (err == nil) != (x.want != "") || err == nil && got != x.want {
			t.Errorf("%s in %s: %s %v, want %s", x.text, x.zone, got, err, x.want)
		}
	}
	if _, err := ParseTime("--after", "soon", LocalNow(timesIn("Europe/Berlin"))); err == nil || !strings.Contains(err.Error(), "(CET where no zone is said)") {
		t.Error(err)
	}
}

// A time that is printed is read as the same time, in the hour that there is twice too.
func TestTimesAreReadAsPrinted(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Nowhere/Else"} {
		f := timesIn(zone)
		for at := time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC); at.Month() < 12; at = at.Add(30 * time.Minute) {
			w := f.Notes()
			printed := text.TimeIn(at, w.Zone)
			if got, err := ParseTime("--after", printed, LocalNow(f)); err != nil || !got.Equal(at) {
				t.Fatalf("%s is read as %v (%v) in %s", printed, got, err, zone)
			}
		}
	}
}
