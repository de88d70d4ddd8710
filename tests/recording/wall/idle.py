"""Three threads that wait for a lock, which another one holds most of the time. Each prints its waits by its own clocks."""
import threading
import time

ROUNDS = 10
lock = threading.Lock()


def hold():
    for _ in range(ROUNDS):
        with lock:
            time.sleep(0.03)
        time.sleep(0.003)


def wait():
    elapsed = 0
    for _ in range(ROUNDS):
        begun = time.monotonic_ns()
        with lock:
            elapsed += time.monotonic_ns() - begun
        time.sleep(0.002)
    print(f"waiter {threading.get_native_id()} {elapsed} 0\n", end="")


threads = [threading.Thread(target=work) for work in (hold, wait, wait, wait)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
