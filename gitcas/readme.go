package gitcas

// readmeText is the README.md of the branch: a constant, so that it costs nothing
// to anybody and says nothing that could become wrong.
const readmeText = `# uwf state

This branch is written by uwf, a workflow engine for teams of AI agents whose
database is git. It has no common history with the code, and nothing here is
meant to be merged or edited by hand.

- ` + "`threads.yaml`" + `: the threads that are alive, and where each one stands
- ` + "`threads/<id>/pages/index.md`" + `: a thread in a page; beside it ` + "`00-task.md`" + `, its task, and ` + "`NN-<role>.md`" + `, its steps
- ` + "`threads/<id>/<HASH>.json`" + `: the same as immutable records
- ` + "`threads/<id>/<HASH>.<HASH>.json`" + `: what the record of the first hash refers to; ` + "`detail/<HASH>/`" + ` has what its agent did
- ` + "`threads/<id>/older/`" + `: the same of its older steps, eight to a folder
- ` + "`cas/`" + `: workflows and schemas that threads share; ` + "`registry.yaml`" + `: their names
- ` + "`history/YYYY/MM-DD.md`" + `: the threads that ended on a day; ` + "`.jsonl`" + ` the same, one a line
- ` + "`former/`" + `: what imported nodes are called that had other hashes where they came from

Every step is one commit: ` + "`git log <this branch> -- threads/<id>`" + ` is the thread.
What has ended is taken off the tip, but stays in the history: the page of the day
has the command that shows it.
`
