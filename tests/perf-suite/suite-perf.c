/* A program named `perf`, first in PATH while perf's own shell tests run.
 *
 * Those tests call `perf` for two things: the tool under test, and small
 * workloads inside perf (`perf test -w noploop`) that neither perf 6.1 nor pmc
 * has all of. The workloads are here, so that their samples carry comm and DSO
 * `perf` and the symbol names that the tests look for; every other call goes
 * to the tool named by SUITE_TOOL.
 *
 *   perf test -w NAME ...           a workload below
 *   perf test ... Symbols           the symbols of this file (the tests ask
 *                                   whether their target symbol can be named)
 *   perf bench ...                  SUITE_BENCH (real perf: a workload only)
 *   perf check feature X            own answer, the same for every tool
 *   perf version --build-options    own answer, the same for every tool
 *   PERF_TEST_ATTR=dir perf ...     SUITE_ATTR, if set (records opened attrs)
 *   anything else                   SUITE_TOOL
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))
#define COUNT(a) (sizeof(a) / sizeof *(a))

volatile sig_atomic_t done; /* inlineloop.c reads it */
int inlineloop_run(void);

static void stop(int sig) { (void)sig; done = 1; }

/* Sets `done` after SECONDS (a fraction is allowed). */
static void run_for(double seconds)
{
	struct itimerval t = { .it_value = { (long)seconds, (long)((seconds - (long)seconds) * 1e6) } };
	if (!t.it_value.tv_sec && !t.it_value.tv_usec)
		t.it_value.tv_usec = 1;
	signal(SIGINT, stop);
	signal(SIGALRM, stop);
	setitimer(ITIMER_REAL, &t, NULL);
}

static double number(int argc, char **argv, int at, double otherwise)
{
	return argc > at ? atof(argv[at]) : otherwise;
}

KEPT int noploop(int argc, char **argv)
{
	run_for(number(argc, argv, 0, 1));
	while (!done)
		continue;
	return 0;
}

static volatile unsigned work;

KEPT void test_loop(void)
{
	while (!done)
		work++;
}

KEPT static void *thfunc(void *unused)
{
	test_loop();
	return unused;
}

KEPT int thloop(int argc, char **argv)
{
	int threads = number(argc, argv, 1, 2);
	pthread_t t[256];
	if (threads < 1 || threads > 256)
		return 1;
	run_for(number(argc, argv, 0, 1));
	for (int i = 1; i < threads; i++)
		if (pthread_create(&t[i], NULL, thfunc, NULL))
			return 1;
	test_loop();
	for (int i = 1; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}

KEPT void leaf(void)
{
	while (!done)
		work++;
}

KEPT void parent(void)
{
	leaf();
	__asm__ volatile("" ::: "memory"); /* no tail call: the frame must stay */
}

KEPT int leafloop(int argc, char **argv)
{
	run_for(number(argc, argv, 0, 1));
	parent();
	return 0;
}

KEPT void sqrt_work(void)
{
	static volatile double x = 2;
	while (!done)
		x = sqrt(x + 1);
}

KEPT int sqrtloop(int argc, char **argv)
{
	pid_t child = fork();
	run_for(number(argc, argv, 0, 1));
	sqrt_work();
	if (child > 0)
		waitpid(child, NULL, 0);
	return child < 0;
}

KEPT void brstack_bar(void) { work++; }
KEPT void brstack_foo(void)
{
	brstack_bar();
	work++;
}
KEPT void brstack_bench(void)
{
	void (*volatile indirect)(void) = brstack_foo;
	if ((work & 7) == 0)
		work += 2;
	brstack_foo();
	indirect();
	brstack_bar();
}
KEPT int brstack(int argc, char **argv)
{
	long rounds = number(argc, argv, 0, 999999);
	for (long i = 0; i < rounds; i++)
		brstack_bench();
	return 0;
}

/* Two fields that two branches write; `reserved` keeps them on two lines. */
struct datasym {
	char data1;
	char reserved[55];
	char data2;
} __attribute__((aligned(64)));
__attribute__((used)) struct datasym workload_datasym_buf1, buf1;

KEPT int datasym(int argc, char **argv)
{
	volatile struct datasym *b = &workload_datasym_buf1;
	run_for(number(argc, argv, 0, 1));
	while (!done) {
		b->data1++;
		if (b->data1 == 123)
			b->data1 += b->data2;
		b->data2 += b->data1;
	}
	return 0;
}

KEPT int inlineloop(int argc, char **argv)
{
	run_for(number(argc, argv, 0, 1));
	return inlineloop_run();
}

static const struct {
	const char *name;
	int (*run)(int, char **);
} workloads[] = {
	{ "noploop", noploop }, { "thloop", thloop }, { "leafloop", leafloop }, { "sqrtloop", sqrtloop },
	{ "brstack", brstack }, { "datasym", datasym }, { "inlineloop", inlineloop },
};

static const char *const symbols[] = {
	"noploop", "test_loop", "thloop", "leaf", "parent", "leafloop", "sqrtloop", "brstack",
	"brstack_bench", "brstack_foo", "brstack_bar", "datasym", "workload_datasym_buf1", "buf1",
	"inlineloop",
};

static int is(const char *a, const char *b) { return a && !strcmp(a, b); }

static int has_feature(const char *f)
{
	static const char *const on[] = { "libtraceevent", "libelf", "libdw", "dwarf", "dwarf-unwind",
					  "libdw-dwarf-unwind", "zlib", "libzstd", "auxtrace" };
	for (unsigned i = 0; f && i < COUNT(on); i++)
		if (!strcasecmp(f, on[i]))
			return 1;
	return 0;
}

/* A workload that falls (dies by a signal) is perf's fault and not the tool's:
 * it is tried again, and that is said. */
static int bench(const char *perf, char **argv)
{
	int status = 0;
	for (int try = 0; try < 3; try++) {
		pid_t child = fork();
		if (!child) {
			execv(perf, argv);
			_exit(127);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0)
			return 127;
		if (!WIFSIGNALED(status))
			return WEXITSTATUS(status);
		fprintf(stderr, "the oracle crashed: perf bench died of signal %d\n", WTERMSIG(status));
	}
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	const char *tool = getenv("SUITE_TOOL");
	if (argc > 3 && is(argv[1], "test") && is(argv[2], "-w")) {
		for (unsigned i = 0; i < COUNT(workloads); i++)
			if (is(argv[3], workloads[i].name))
				return workloads[i].run(argc - 4, argv + 4);
		fprintf(stderr, "no workload %s in this stand-in\n", argv[3]);
		return 2;
	}
	if (argc > 2 && is(argv[1], "test") && is(argv[argc - 1], "Symbols")) {
		for (unsigned i = 0; i < COUNT(symbols); i++)
			printf(" %s\n", symbols[i]);
		return 0;
	}
	if (argc > 3 && is(argv[1], "check") && is(argv[2], "feature"))
		return !has_feature(argv[argc - 1]);
	if (argc > 2 && is(argv[1], "version") && is(argv[2], "--build-options")) {
		puts("stand-in for perf's tests\n  libbfd: [ OFF ]\n"
		     "  libpython: [ OFF ]  # HAVE_LIBPYTHON_SUPPORT\n"
		     "  bpf_skeletons: [ OFF ]  # HAVE_BPF_SKEL\n  libpfm4: [ OFF ]  # HAVE_LIBPFM\n"
		     "  libdw-dwarf-unwind: [ on ]  # HAVE_DWARF_UNWIND_SUPPORT\n"
		     "  zstd: [ on ]  # HAVE_ZSTD_SUPPORT");
		return 0;
	}
	if (is(argv[1], "bench") && getenv("SUITE_BENCH"))
		return bench(getenv("SUITE_BENCH"), argv);
	if (getenv("PERF_TEST_ATTR") && getenv("SUITE_ATTR"))
		tool = getenv("SUITE_ATTR");
	if (!tool) {
		fputs("SUITE_TOOL is not set\n", stderr);
		return 127;
	}
	/* No folder in argv[0]: perf would put that folder first in PATH, and the
	 * workload `perf` would then be another one than this. */
	argv[0] = strrchr(tool, '/') ? strrchr(tool, '/') + 1 : (char *)tool;
	execv(tool, argv);
	fprintf(stderr, "%s: %s\n", tool, strerror(errno));
	return 127;
}
