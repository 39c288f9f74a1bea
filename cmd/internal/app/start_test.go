package app_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStart is what each uwf costs before it does anything, in processor time
// since a job's steps and an agent's commands are many, beside a git.
func BenchmarkStart(b *testing.B) {
	uwf := filepath.Join(b.TempDir(), "uwf")
	if out, err := exec.Command("go", "build", "-o", uwf, "../../uwf").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, program := range []string{uwf, "git"} {
		b.Run(filepath.Base(program), func(b *testing.B) {
			var spent time.Duration
			for b.Loop() {
				c := exec.Command(program, "--version")
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
				spent += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
