package cassette_test

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// A cassette written by hand says what the model answers, and, by match, what it must have
// been asked.
func Example() {
	c, err := cassette.Parse("fix.yaml", []byte(`{"role":"developer","match":{"contains":["FAIL"]},"answer":{"text":"I will mend Pop."}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	player := c.NewPlayer(cassette.PlayerOptions{Step: 1, Role: "developer"})
	asked := &dialect.Request{Messages: []dialect.Message{{Role: "user", Text: "--- FAIL: TestPop"}}}
	answer, _, err := player.Play(asked)
	fmt.Println(answer.Text, err)

	_, _, err = player.Play(asked)
	var mismatch *cassette.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println(mismatch.What)
	}
	// Output:
	// I will mend Pop. <nil>
	// the cassette ends after 1
}
