package redact_test

import (
	"encoding/base64"
	"fmt"

	"github.com/united-workforce/uwf/engine/redact"
)

// A secret is found as it stands, and in the forms that programs print it in.
func ExampleNew() {
	const key = "correct-horse-battery-staple"
	r, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "API_KEY", Value: key}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range []string{
		"the key is " + key,
		"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("octo:"+key)),
		"nothing to see",
	} {
		text, found := r.String(s)
		fmt.Println(found, text)
	}
	// Output:
	// 1 the key is [redacted:API_KEY]
	// 1 Authorization: Basic [redacted:API_KEY]
	// 0 nothing to see
}
