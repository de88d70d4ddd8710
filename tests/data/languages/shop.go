// A spin in a method that is inlined; each frame of the stack has a line of its own.
package main

import (
	"os"
	"strconv"
	"syscall"
)

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

// CPU time of the process in milliseconds.
func cpu() int64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return (used.Utime.Nano() + used.Stime.Nano()) / 1000000
}

//go:noinline
func day(ms int64, price uint64) uint64 {
	t := Till{}
	for end := cpu() + ms; cpu() < end; {
		t.sum ^= serve(&t, price) // mark day
	}
	return t.sum
}

func main() {
	tick = uint64(len(os.Args))
	speed, err := strconv.ParseFloat(os.Getenv("PMC_TEST_LOOP_SPEED"), 64)
	if err != nil {
		speed = 1
	}
	if day(500, uint64(100000/speed)) == 42 { // mark main
		os.Exit(1)
	}
}
