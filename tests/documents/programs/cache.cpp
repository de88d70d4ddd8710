// Three threads look up entries in a cache, and a fourth writes old entries to the disk while it holds the lock.
#include <fcntl.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>

struct Cache {
    static std::mutex lock;
    std::map<long, long> entries;
    int file = open("cache.log", O_CREAT | O_WRONLY, 0600);

    __attribute__((noinline)) void flush();
    __attribute__((noinline)) long lookup(long key);
};
std::mutex Cache::lock;

void Cache::flush() {
    lock.lock();
    for (int i = 0; i < 3; i++)
        if (write(file, "old entries\n", 12) != 12 || fsync(file) || usleep(2000))
            break;
    lock.unlock();
    usleep(1000);
}
long Cache::lookup(long key) {
    lock.lock();
    long found = entries[key % 1000]++;
    for (int i = 0; i < 20000; i++)
        found += key ^ i;
    volatile long sink = found;
    (void)sink;
    lock.unlock();
    usleep(100);
    return found;
}

int main() {
    Cache cache;
    bool is_done = false;
    std::thread writer([&] {
        pthread_setname_np(pthread_self(), "writer");
        while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED))
            cache.flush();
    });
    std::thread servers[3];
    for (int number = 0; number < 3; number++)
        servers[number] = std::thread([&cache, number] {
            pthread_setname_np(pthread_self(), ("server-" + std::to_string(number + 1)).c_str());
            for (long key = 0; key < 150; key++)
                cache.lookup(key * 7 + number);
        });
    for (auto &server : servers)
        server.join();
    __atomic_store_n(&is_done, true, __ATOMIC_RELAXED);
    writer.join();
}
