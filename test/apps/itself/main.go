// Waits that are known, in a trace that Go itself writes: what integration/test_formats.py compares ours with.
package main

import (
	"fmt"
	"os"
	"runtime/trace"
	"sync"
	"syscall"
	"time"
)

const rounds, length = 10, 10 * time.Millisecond

func compute(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

func main() {
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		panic(err)
	}
	var mutex sync.Mutex
	var calls, locks time.Duration
	trace.Start(file)
	for i := 0; i < rounds; i++ {
		go func() {
			time.Sleep(length)
			syscall.Write(pipe[1], []byte{1})
		}()
		begin := time.Now()
		syscall.Read(pipe[0], make([]byte, 1))
		calls += time.Since(begin)
		compute(length)
	}
	for i := 0; i < rounds; i++ {
		mutex.Lock()
		go func() {
			time.Sleep(length)
			mutex.Unlock()
		}()
		begin := time.Now()
		mutex.Lock()
		locks += time.Since(begin)
		mutex.Unlock()
		compute(length)
	}
	trace.Stop()
	// What was waited for, in nanoseconds.
	fmt.Println(calls.Nanoseconds(), locks.Nanoseconds())
}
