// Package forgetest is a forge for tests: one repository on a server of its own that
// answers as GitHub's REST API does or, by a switch, as Gitea's, and serves the real
// git repository behind it by git's own http-backend. It listens on the loopback
// interface only, knows users, tokens and their permissions, records every call, and
// injects faults. It never imports the code that it is made to test.
//
//	s := forgetest.Start(t, forgetest.Options{})          // or Options{Gitea: true}
//	s.MustCommit(t, "main", "Begin", map[string]string{"README.md": "# Demo\n"})
//	s.SetPermission("alice", "write")
//	n := s.OpenIssue("alice", "It breaks", "Sometimes.")
//	event := s.Label("alice", n, "uwf")                    // the event that a job gets
//	token := s.JobToken(forgetest.JobPermissions())        // the token that a job gets
//	client := NewClient(s.APIURL, token)                   // GITHUB_API_URL
//	clone(s.CloneURL(), token)                             // GITHUB_SERVER_URL/owner/name.git
//
// What a job did is read back with Comments, Pulls, Issue, TakeDispatches, Calls and
// Git; what goes wrong is said with Inject, Protect, RefuseSecrets, SetPullsAllowed
// and the permissions of the token.
//
// # What differs between the flavours
//
// GitHub answers a duplicate pull request with 422, Gitea with 409; GitHub refuses one
// without commits, Gitea opens it; GitHub checks a dispatch's inputs against the
// workflow file, Gitea drops those that it doesn't name, and asks for no trigger; GitHub
// makes labels that are put on an issue, Gitea ignores names it does not know, wants an
// object around the list and takes labels off by id; Gitea shows all comments at once,
// and fails where there is no issue; it ignores the pull request list's head, lets
// everybody change their own comments and pull requests, does not tell a job's token
// what others may do, but who it is, which GitHub does not; it numbers that user below
// 0, and has no repository_dispatch, no git/ref, no pulls/comments, no settings of jobs
// and no rulesets; its hook fails, without a reason, where a job pushes to a protected
// branch.
//
// A login has the same id in all answers and events of a server.
//
// # Sources
//
// GitHub: docs.github.com/rest (2022-11-28) and the messages that its users quote;
// Gitea: version 1.26.0 itself; .ci/gitea asks both the same, call by call, and compares
// answers and events.
package forgetest
