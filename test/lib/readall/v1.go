// Reads traces with the package that `go tool trace` reads them with, many in one process: up to Go 1.21.
// Prints each file that it refuses, and why.
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"os"
	"strings"
)

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	result, err := trace.Parse(bufio.NewReader(file), "")
	// What is said of a Go 1.5 trace without a program, after all of it was found to be right.
	if err != nil && strings.Contains(err.Error(), "the binary argument must be provided") {
		return nil
	}
	if err != nil {
		return err
	}
	return unended(result.Events)
}

// What the web pages show as a slice, and fail on when it has no end: GoStart, GoStartLabel, GCStart, STWStart.
func unended(events []*trace.Event) error {
	for _, event := range events {
		switch event.Type {
		case 14, 41, 7, 9:
			if event.Link == nil {
				return fmt.Errorf("no end of %v", event)
			}
		}
	}
	return nil
}

func main() {
	for _, path := range os.Args[1:] {
		if err := read(path); err != nil {
			fmt.Printf("%s: %v\n", path, err)
		}
	}
}
