// A task with a region and a log, while another goroutine waits for a mutex; writes its trace to the file that it is given.
package main

import (
	"context"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

var mu sync.Mutex

func waiter(done chan bool) {
	mu.Lock()
	mu.Unlock()
	done <- true
}

func main() {
	file, _ := os.Create(os.Args[1])
	trace.Start(file)
	ctx, task := trace.NewTask(context.Background(), "work")
	done := make(chan bool)
	mu.Lock()
	go waiter(done)
	trace.WithRegion(ctx, "hold", func() { time.Sleep(50 * time.Millisecond) })
	trace.Log(ctx, "key", "value")
	mu.Unlock()
	<-done
	task.End()
	trace.Stop()
}
