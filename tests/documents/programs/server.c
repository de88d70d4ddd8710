#include <stdio.h>

struct body { long size, parts[4]; };
struct request { char path[16]; struct body body; };

static long served;

static __attribute__((noinline)) int check(struct request *request) {
    return request->body.size % 50 == 0;
}

__attribute__((noinline)) int handle(struct request *request, int retries)
{
	long sum = 0;
	for (int i = 0; i < 4; i++)
		sum += request->body.parts[i];
	served++;
	if (check(request))
		return -1;
	return sum + retries;
}

int main(void)
{
	struct request request = {0};
	long sum = 0;
	for (int i = 0; i < 222; i++) {
		snprintf(request.path, sizeof request.path, "/page/%d", i % 10);
		request.body.size = i * 37;
		request.body.parts[i % 4] = i;
		sum += handle(&request, i % 3);
	}
	return sum == 0;
}
