// What the tracer of Go tells, as far as a program can have it, in a trace that Go itself writes: for
// integration/test_go_traces.py.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"syscall"
	"time"
)

var all sync.WaitGroup

func spawn(f func()) {
	all.Add(1)
	go func() {
		defer all.Done()
		f()
	}()
}

func compute(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// computeForTicks uses a CPU for d, however long it waits for one: a profile has a sample every 10 ms of that.
func computeForTicks(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var usage syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_THREAD, &usage)
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	for begin := used(); used()-begin < d; {
	}
}

func channels() {
	numbers, results, quit := make(chan int), make(chan int, 4), make(chan bool)
	for i := 0; i < 4; i++ {
		spawn(func() {
			for {
				select {
				case n := <-numbers:
					results <- n * n
				case <-quit:
					return
				}
			}
		})
	}
	spawn(func() {
		for i := 0; i < 400; i++ {
			numbers <- i
		}
	})
	for i := 0; i < 400; i++ {
		<-results
	}
	close(quit)
}

func locks() {
	var mutex sync.Mutex
	var shared sync.RWMutex
	cond := sync.NewCond(&mutex)
	turn := 0
	for i := 0; i < 4; i++ {
		i := i
		spawn(func() {
			for k := 0; k < 20; k++ {
				mutex.Lock()
				for turn%4 != i {
					cond.Wait()
				}
				turn++
				cond.Broadcast()
				mutex.Unlock()
				shared.RLock()
				compute(10 * time.Microsecond)
				shared.RUnlock()
				shared.Lock()
				time.Sleep(50 * time.Microsecond)
				shared.Unlock()
			}
		})
	}
}

func network() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	spawn(func() {
		connection, _ := listener.Accept()
		io.Copy(connection, connection)
		connection.Close()
	})
	spawn(func() {
		connection, _ := net.Dial("tcp", listener.Addr().String())
		buffer := make([]byte, 100)
		for i := 0; i < 50; i++ {
			connection.Write(buffer)
			io.ReadFull(connection, buffer)
			time.Sleep(100 * time.Microsecond)
		}
		connection.Close()
		listener.Close()
	})
}

func calls() {
	var pipe [2]int
	syscall.Pipe(pipe[:])
	spawn(func() {
		runtime.LockOSThread()
		for i := 0; i < 20; i++ {
			time.Sleep(time.Millisecond)
			syscall.Write(pipe[1], []byte{1})
		}
		syscall.Close(pipe[1])
	})
	spawn(func() {
		for n := 1; n > 0; {
			n, _ = syscall.Read(pipe[0], make([]byte, 1))
		}
		for i := 0; i < 50; i++ {
			os.ReadFile("/proc/self/stat")
		}
	})
}

func annotations() {
	spawn(func() {
		ctx, task := trace.NewTask(context.Background(), "request")
		defer task.End()
		for i := 0; i < 20; i++ {
			trace.WithRegion(ctx, "part", func() {
				trace.Log(ctx, "step", "here")
				trace.StartRegion(ctx, "inner").End()
				time.Sleep(100 * time.Microsecond)
			})
		}
	})
	pprof.Do(context.Background(), pprof.Labels("name", "labelled"), func(context.Context) {
		spawn(func() { computeForTicks(100 * time.Millisecond) })
	})
}

var garbage [][]byte

func memory() {
	spawn(func() {
		for i := 0; i < 200; i++ {
			garbage = append(garbage, make([]byte, 100000))
			if len(garbage) > 50 {
				garbage = nil
			}
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	})
}

func timers() {
	ticker := time.NewTicker(2 * time.Millisecond)
	spawn(func() {
		for i := 0; i < 10; i++ {
			<-ticker.C
		}
		ticker.Stop()
	})
	for i := 0; i < 20; i++ {
		all.Add(1)
		time.AfterFunc(time.Duration(i)*time.Millisecond, all.Done)
	}
}

func crowd() {
	for i := 0; i < 500; i++ {
		spawn(func() {
			runtime.Gosched()
			time.Sleep(time.Millisecond)
		})
	}
}

func main() {
	file, err := os.Create(os.Args[1]) // another argument: with a profile of the CPU
	if err != nil {
		panic(err)
	}
	early := make(chan bool)
	spawn(func() { <-early })
	var pipe [2]int
	syscall.Pipe(pipe[:])
	spawn(func() { syscall.Read(pipe[0], make([]byte, 1)) }) // it is in a call when recording begins
	time.Sleep(10 * time.Millisecond)
	profile := len(os.Args) > 2
	if profile {
		out, _ := os.Create(os.DevNull)
		pprof.StartCPUProfile(out)
	}
	trace.Start(file)
	begin := time.Now()
	for _, part := range []func(){channels, locks, network, calls, annotations, memory, timers, crowd, coroutines} {
		part()
	}
	spawn(func() { select {} })
	all.Done()
	time.Sleep(5 * time.Millisecond)
	fmt.Println(time.Since(begin).Nanoseconds()) // since then that call, and that wait, have lasted
	syscall.Write(pipe[1], []byte{1})
	close(early)
	all.Wait()
	trace.Stop()
	if profile {
		pprof.StopCPUProfile()
	}
}
