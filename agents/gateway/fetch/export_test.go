package fetch

// For fuzzing.
var (
	ReadHTML = readHTML
	CheckURL = checkURL
)
