# Run with -X perf: each Python function has a trampoline of its own that the perf map names.
def serve(price):
    sum = 0
    for i in range(price):
        sum += i
    return sum


def day(customers):
    total = 0
    for i in range(customers):
        total ^= serve(10000)
    return total


day(6000)
