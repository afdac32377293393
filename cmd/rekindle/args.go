package main

import "strings"

// doubleDashes turns -name into --name, so that flags can be written as Go
// programs have them. No command has a flag of one letter but -h. Negative
// numbers and whatever follows "--" stay as they are.
func doubleDashes(args []string) []string {
	out := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if isSingleDash(arg) {
			arg = "-" + arg
		}
		out = append(out, arg)
	}
	return out
}

func isSingleDash(arg string) bool {
	if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' {
		return false
	}
	return !strings.ContainsRune("0123456789.", rune(arg[1]))
}
