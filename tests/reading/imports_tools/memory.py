# Allocates memory that it keeps, and memory that it frees: in recursion, in a generator and in a thread.
import threading

kept = []


def leaf(n):
    return bytearray(n)


def deep(n, size):
    return leaf(size) if n == 0 else deep(n - 1, size)


class Store:
    def fill(self):
        kept.extend(leaf(100_000 + i) for i in range(20))


def temporary():
    for _ in range(30):
        leaf(500_000)


def worker():
    kept.append(deep(5, 3_000_000))


def main():
    Store().fill()
    kept.append(deep(3, 1_000_001))
    temporary()
    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
    kept.append([leaf(2_000_000), "x" * 700_000])


main()
