// Package modeltest is a provider of models for tests of programs that ask models: an
// http.Handler that speaks chat completions, responses, messages and generateContent,
// streamed or whole, and does what marks in the prompt say. Nothing that ships imports it.
//
// The model calls the first tool that runs a command, or that writes a file, and then
// answers. It finds them among the tools that it is offered by name, and fills their
// schema, so that any coding agent can be put before it. It answers with the first
// example of an answer that the prompt gives (as uwf's prompts do), else with the fields
// $status and summary.
//
// Marks, anywhere in what the user said:
//
//	[[err400]]         refuse with that status: 400, 401, 403, 429, 500 or 529
//	[[hang]]           don't answer, until the client goes
//	[[stall]]          don't answer what a tool gave, until the client goes
//	[[cut]]            end the connection after the first event
//	[[plain]]          answer at once, without a tool
//	[[length]]         end each answer at the limit of its length, before its end
//	[[filter]]         end each answer by the provider's filter, before its end
//	[[length-once]]    the same, for the first answer of a conversation
//	[[filter-once]]    the same
//	[[halves]]         end the first answer in its middle, at the limit; the next is the rest
//	[[empty]]          end with an answer that has no text
//	[[garbage]]        end with an answer without fields, whatever is said about it
//	[[badfinal]]       the same, once in a conversation
//	[[sleep]]          run a command that makes the file started and never ends
//	[[env]]            write the command's environment to env.txt, its ids to id.txt
//	[[run COMMAND]]    run that command
//	[[background COMMAND]]  run that command in the background, by the tool's own way
//	[[impatient]]      give the command three seconds, where the tool takes a number of them
//	[[edit PATH="…"]]  write that JSON string to the file; any number of them, see Edit
//	[[write]]          call the tool that writes files, not the one that runs commands
package modeltest
