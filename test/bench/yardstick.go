// Go's own tracer on the same kinds of events: yardstick <channel|cond|read> [trace file]. Prints ns an operation.
package main

import (
	"fmt"
	"os"
	"runtime/trace"
	"sort"
	"sync"
	"time"
)

const (
	batches = 30
	batch   = 10 * time.Millisecond
)

func channel() func() {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	return func() {
		there <- 1
		<-back
	}
}

func cond() func() {
	var mutex sync.Mutex
	c, turn := sync.NewCond(&mutex), 0
	go func() {
		mutex.Lock()
		for {
			for turn == 0 {
				c.Wait()
			}
			turn = 0
			c.Signal()
		}
	}()
	return func() {
		mutex.Lock()
		turn = 1
		c.Signal()
		for turn == 1 {
			c.Wait()
		}
		mutex.Unlock()
	}
}

func read() func() {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 1)
	return func() { zero.Read(buf) }
}

func main() {
	run := map[string]func() func(){"channel": channel, "cond": cond, "read": read}[os.Args[1]]()
	if len(os.Args) > 2 {
		file, err := os.Create(os.Args[2])
		if err != nil {
			panic(err)
		}
		if err := trace.Start(file); err != nil {
			panic(err)
		}
		defer trace.Stop()
	}
	took, done := []float64{}, 0
	for i := 0; i < batches; i++ {
		n, start := 0, time.Now()
		for ; time.Since(start) < batch; n += 100 {
			for k := 0; k < 100; k++ {
				run()
			}
		}
		took = append(took, float64(time.Since(start).Nanoseconds())/float64(n))
		done += n
	}
	sort.Float64s(took)
	fmt.Printf("%.1f %d\n", took[batches/2], done)
}
