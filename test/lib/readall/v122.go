// Reads traces with the package that `go tool trace` reads them with, many in one process: Go 1.22, which has a package for each family.
// Prints each file that it refuses, and why.
package main

import (
	"bufio"
	"fmt"
	v1 "internal/trace"
	v2 "internal/trace/v2"
	"io"
	"os"
	"strings"
)

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	version, _, err := v1.ReadVersion(file)
	if err != nil {
		return err
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if version < 1022 {
		result, err := v1.Parse(bufio.NewReader(file), "")
		// What is said of a Go 1.5 trace without a program, after all of it was found to be right.
		if err != nil && strings.Contains(err.Error(), "the binary argument must be provided") {
			return nil
		}
		if err != nil {
			return err
		}
		return unended(result.Events)
	}
	r, err := v2.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	for {
		if _, err := r.ReadEvent(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// What the web pages show as a slice, and fail on when it has no end: GoStart, GoStartLabel, GCStart, STWStart.
func unended(events []*v1.Event) error {
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
