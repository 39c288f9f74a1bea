// Package forge tries uwf where it works: on a real Gitea, which is built from its
// module, started on the loopback interface and given a runner made of Gitea's own
// library, and in the action's image, as GitHub's runner runs it. It also compares what
// the fake forge answers with what Gitea does. .ci/gitea and .ci/image build what it
// needs and run it.
package forge
