// A spin in a method that is inlined; each frame of the stack has a line of its own.
package main

import "os"

type Till struct{ sum uint64 }

var tick uint64

func (t *Till) ring(price uint64) {
	t.sum = t.sum/7 + t.sum%13 + price*tick // mark ring
}

//go:noinline
func close(t *Till) uint64 {
	return t.sum
}

// It calls on, so it has a frame: Go gives none to functions that do not, and their callers are passed over.
//
//go:noinline
func serve(t *Till, price uint64) uint64 {
	for i := uint64(0); i < price; i++ { // mark loop
		t.ring(i) // mark serve
	}
	return close(t)
}

//go:noinline
func day(customers int) uint64 {
	t := Till{}
	for i := 0; i < customers; i++ {
		t.sum ^= serve(&t, 500000) // mark day
	}
	return t.sum
}

func main() {
	tick = uint64(len(os.Args))
	if day(250) == 42 { // mark main
		os.Exit(1)
	}
}
