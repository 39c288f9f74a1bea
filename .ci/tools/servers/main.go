// Servers serves the repositories of a folder by one of Go's git servers, for .ci/run servers.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/go-git/go-billy/v6/osfs"
	"github.com/go-git/go-git/v6/backend"
	"github.com/go-git/go-git/v6/plumbing/transport"
	"github.com/sosedoff/gitkit"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: servers gitkit|go-git ADDRESS FOLDER")
	}
	var handler http.Handler
	switch args[0] {
	case "gitkit":
		handler = gitkit.New(gitkit.Config{Dir: args[2]})
	case "go-git":
		handler = backend.New(transport.NewFilesystemLoader(osfs.New(args[2]), true))
	default:
		return fmt.Errorf("there is no server %s", args[0])
	}
	return http.ListenAndServe(args[1], handler)
}
