package fault

import "testing"

func FuzzServerText(f *testing.F) {
	f.Add("error: GH013: x\nremote: y\r\x1b[2K")
	f.Fuzz(func(t *testing.T, s string) {
		for _, reason := range []string{s, "hook declined", "atomic transaction failed", "failed to update ref"} {
			detail, _ := TranslateRefusal("refs/heads/a", reason, s)
			if len(detail) > 2048 {
				t.Errorf("a detail of %d bytes", len(detail))
			}
		}
	})
}
