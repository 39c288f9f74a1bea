package sanitize

// Options of Outgoing.
type Options struct {
	// Closes are the issues of this repository that the text may close by a keyword,
	// such as that of "Fixes #12".
	Closes []int
	// Repo is this repository as owner/name, and Server its forge's address
	// (https://github.com): links to issues of other repositories are made
	// harmless. Empty: all are.
	Repo, Server string
	// Max is the most characters; 0 means MaxText.
	Max int
}

// MaxText is the default of Options.Max: below the 65,536 characters of a forge's
// comments, with room for what is written around the text.
const MaxText = 60_000

// Outgoing makes what an agent wrote harmless before it is posted.
func Outgoing(s string, o Options) string { return s }

// Title is a text on one line of at most 256 characters, as the title of an issue
// or a pull request, or as a cell of a table.
func Title(s string) string { return s }
