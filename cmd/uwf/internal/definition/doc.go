// Package definition finds the workflow that an argument means (a hash, a file, a
// name in the repository's folders or in the registry) and the definition files that
// arguments mean (folders and patterns too), and compiles them. It stores nothing.
package definition
