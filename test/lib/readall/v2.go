// Reads traces with the package that `go tool trace` reads them with, many in one process: Go 1.23 and later.
// Prints each file that it refuses, and why.
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"io"
	"os"
)

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := trace.NewReader(bufio.NewReader(file))
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

func main() {
	for _, path := range os.Args[1:] {
		if err := read(path); err != nil {
			fmt.Printf("%s: %v\n", path, err)
		}
	}
}
