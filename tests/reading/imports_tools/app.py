# A program with threads, recursion, a class, generated code and functions without a name of their own.
# `app.py SECONDS`: the CPU time of each thread.
import sys
import threading
import time


def leaf(n):
    x = 0
    for i in range(n):
        x += i * i % 7
    return x


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return leaf(200) if n == 0 else odd(n - 1)


def odd(n):
    return leaf(100) if n == 0 else even(n - 1)


class Shape:
    def area(self):
        return sum(leaf(50) for _ in range(20))

    def __repr__(self):
        return "<Shape %d>" % self.area()


def worker(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        fib(12)
        leaf(2000)
        repr(Shape())


def main(seconds):
    threads = [threading.Thread(target=worker, args=(seconds,), name="worker; %d" % i) for i in range(2)]
    for thread in threads:
        thread.start()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        fib(14)
        even(40)
        leaf(3000)
        exec("leaf(500)", globals())
        sorted(range(50), key=lambda x: -x)
    for thread in threads:
        thread.join()


main(float(sys.argv[1]))
