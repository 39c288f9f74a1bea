package thread

import "testing"

// TestPausedWhilePoked: a pause that is asked for while somebody pokes or retries is
// left to them, and must not get lost.
func TestPausedWhilePoked(t *testing.T) {
	for _, deed := range []string{"poke", "retry"} {
		t.Run(deed, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				answer := f.agent
				f.agent = f.fails
				_, err := f.step("f")
				f.code(err, CodeFailed)
				f.agent = answer
				f.hook = func(point string) {
					if point == deed+" claimed" {
						f.hook = nil
						f.ok(f.engine("other", 1).Pause(f.Context(), testThread, "let me look"))
					}
				}
				f.ok(f.deed(deed))
				runs := len(f.runs)
				_, err = f.step("r2")
				f.says(f.code(err, CodeSuspended), "let me look")
				if len(f.runs) != runs {
					f.Error("it ran")
				}
				f.sound()
				f.ok(f.deed("resume"))
				f.steps("r3")
			})
		})
	}
}
