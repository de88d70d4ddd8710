# Run with -X perf: each Python function has a trampoline of its own that the perf map names.
import os
import time

PRICE = int(10000 / float(os.environ.get("PMC_TEST_LOOP_SPEED", 1)))


def serve(price):
    sum = 0
    for i in range(price):
        sum += i
    return sum


def day(seconds):
    total = 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        total ^= serve(PRICE)
    return total


day(1)
