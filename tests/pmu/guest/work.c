/* work LOOPS [SYSCALLS]: a known number of instructions.
 *
 * LOOPS times two instructions in user mode (sub, branch), then SYSCALLS times getppid(2), which spends its time in
 * the kernel. What the C library and the kernel do at start and exit comes on top: some hundred thousand instructions.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long loops = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
	unsigned long calls = argc > 2 ? strtoul(argv[2], 0, 10) : 0;

	if (loops)
		__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(loops) : : "cc");
	while (calls--)
		syscall(SYS_getppid);
	return 0;
}
