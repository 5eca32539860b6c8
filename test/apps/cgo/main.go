// Goroutines that call C, C that calls back, and C threads that were never Go's.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <unistd.h>

extern int goSquare(int);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void add(int n)
{
    pthread_mutex_lock(&mutex);
    usleep(200);
    total += n;
    pthread_mutex_unlock(&mutex);
}

static int sum(void) { return total; }

static void *from_c(void *n) { return (void *)(long)goSquare((int)(long)n); }

static long on_a_c_thread(long n)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, from_c, (void *)n);
    pthread_join(thread, &result);
    return (long)result;
}
*/
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

//export goSquare
func goSquare(n C.int) C.int {
	runtime.GC() // moves stacks, and signals all threads
	time.Sleep(time.Millisecond)
	return n * n
}

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	squares := 0
	for i := 1; i <= 8; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			runtime.LockOSThread() // so that its thread ends
			for k := 0; k < 200; k++ {
				C.add(C.int(i))
			}
			square := int(C.on_a_c_thread(C.long(i)))
			mu.Lock()
			squares += square
			mu.Unlock()
		}(i)
	}
	spin := 0
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); spin++ {
	}
	wg.Wait()
	fmt.Println(C.sum(), squares, spin > 0)
	for _, name := range os.Args[1:] {
		out, err := exec.Command(name).Output()
		fmt.Printf("%q %v\n", out, err)
	}
}
