//go:build go1.23

package main

import "iter"

// Coroutines.
func coroutines() {
	spawn(func() {
		for i := 0; i < 10; i++ {
			next, stop := iter.Pull(func(yield func(int) bool) {
				for k := 0; k < 10 && yield(k); k++ {
				}
			})
			for {
				n, ok := next()
				if !ok || n > i {
					break
				}
			}
			stop()
		}
	})
}
