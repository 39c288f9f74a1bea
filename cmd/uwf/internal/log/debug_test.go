package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// Following shows what is there, then what comes, once each, and ends quietly when
// it is interrupted.
func TestFollow(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	add := func(minute int, end string) {
		f, err := os.OpenFile(filepath.Join(dir, "2026-06-04.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, `{"time":"2026-06-04T12:%02d:00.000Z","level":"info","tag":"0000000A","msg":"m%d","pid":1}%s`, minute, minute, end)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add(1, "\n")
	add(2, "\n")
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	factory := app.NewAt(home, []string{"UWF_HOME=" + home}, app.IO{Out: &out, Err: &out})
	factory.Format = "text"
	pauses := 0
	o := &Options{
		Factory: factory, Follow: true, Limit: 1,
		Pause: func(context.Context) error {
			switch pauses++; pauses {
			case 1:
				add(3, "") // a line that is not whole yet
			case 2:
				add(4, "\n") // two records on one line: neither is one
			case 3:
				add(5, "\n")
			default:
				cancel()
				return context.Cause(ctx)
			}
			return nil
		},
	}
	if err := debugRun(ctx, o); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, f := range strings.Fields(out.String()) {
		if strings.HasPrefix(f, "m") && len(f) == 2 {
			seen = append(seen, f)
		}
	}
	if got := strings.Join(seen, " "); got != "m2 m5" {
		t.Errorf("%s\n%s", got, out.String())
	}
	broken := errors.New("broken")
	o.Pause = func(context.Context) error { return broken }
	if err := debugRun(t.Context(), o); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
