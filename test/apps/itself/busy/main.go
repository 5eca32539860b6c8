// Threads that do a bit of everything, in a trace that Go itself writes: for integration/test_reports.py.
package main

import (
	"os"
	"runtime"
	"runtime/trace"
	"sync"
	"time"
)

func main() {
	file, _ := os.Create(os.Args[1])
	trace.Start(file)
	var all sync.WaitGroup
	var mutex sync.Mutex
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 50; k++ {
				mutex.Lock()
				time.Sleep(100 * time.Microsecond)
				mutex.Unlock()
				os.ReadFile("/proc/self/stat")
				_ = make([]byte, 100000)
			}
			runtime.GC()
		}()
	}
	all.Wait()
	trace.Stop()
}
