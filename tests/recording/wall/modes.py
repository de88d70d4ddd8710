"""Waits by three means, one thread each. Prints what each waited by its own clocks."""
import os
import threading
import time

TICKS = 30
begun, lines = {}, []
reads, writes = os.pipe()


def f_sleep():
    for _ in range(TICKS):
        time.sleep(0.02)


def f_lock():
    for _ in range(TICKS):
        lock.acquire()


def f_pipe():
    for _ in range(TICKS):
        os.read(reads, 1)


def run(work):
    work()
    elapsed = time.monotonic_ns() - begun[work]
    lines.append(f"{work.__name__[2:]} {threading.get_native_id()} {elapsed} {time.thread_time_ns()}")


lock = threading.Lock()
lock.acquire()
threads = []
for work in (f_sleep, f_lock, f_pipe):
    begun[work] = time.monotonic_ns()
    threads.append(threading.Thread(target=run, args=(work,)))
    threads[-1].start()
for _ in range(TICKS):
    time.sleep(0.02)
    if lock.locked():
        lock.release()
    os.write(writes, b"x")
while threads[1].is_alive():
    time.sleep(0.01)
    if lock.locked():
        lock.release()
for thread in threads:
    thread.join()
print("\n".join(lines))
