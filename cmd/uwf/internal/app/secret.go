package app

// SecretArguments is the annotation of a command whose arguments may be secret:
// they are written down nowhere, whatever the level of the debug log.
const SecretArguments = "uwf:secret-arguments"
