//! What threads wait for, as indicated by the names of the functions in their stacks.
//!
//! Receives the functions of a stack; returns the [`WaitSite`]. To recognize more functions of the kernel or
//! of libc, add them to the tables in this file. `profile::lock::futex_functions` contains the functions that
//! wait on a futex.

use crate::profile::lock::futex_functions::{FutexFunction, stack_use};
use crate::profile::lock::user::FutexUse;
use crate::session::thread_time::ThreadState;
use pmc_perfdata::record::MissingStack;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitSite {
    /// Nothing: the thread is running.
    Running,
    /// A CPU.
    Cpu,
    /// A lock that another thread holds.
    Mutex,
    /// A reader-writer lock.
    RwLock,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of another thread.
    Join,
    /// A futex with another purpose.
    Futex,
    /// The end of a sleep.
    Sleep,
    /// A pipe.
    Pipe,
    /// Any of several descriptors (`poll`, `select`).
    Poll,
    /// Any of several descriptors (`epoll`).
    Epoll,
    /// A socket.
    Socket,
    /// A disk or file system.
    Disk,
    /// A page of a file or of swap space.
    PageFault,
    /// A terminal.
    Terminal,
    /// A child process.
    Child,
    /// A signal.
    Signal,
    /// Asynchronous I/O (`io_uring`, `io_getevents`).
    AsyncIo,
    /// A notification descriptor (`eventfd`, `timerfd`, `inotify`).
    Notification,
    /// A lock of a file (`flock`, `fcntl`) that another process or descriptor holds.
    FileLock,
    /// A lock in the kernel.
    KernelLock,
    /// A debugger.
    Debugger,
    /// Something else in the kernel.
    Kernel,
    /// Waits below the threshold (`--off-cpu-thresh`), whose stacks are not recorded.
    Short,
    /// Unknown, because there is no stack.
    Unknown,
}

impl WaitSite {
    const ALL: [Self; 27] = [
        Self::Running,
        Self::Cpu,
        Self::Mutex,
        Self::RwLock,
        Self::Condition,
        Self::Semaphore,
        Self::Barrier,
        Self::Join,
        Self::Futex,
        Self::Sleep,
        Self::Pipe,
        Self::Poll,
        Self::Epoll,
        Self::Socket,
        Self::Disk,
        Self::PageFault,
        Self::Terminal,
        Self::Child,
        Self::Signal,
        Self::AsyncIo,
        Self::Notification,
        Self::FileLock,
        Self::KernelLock,
        Self::Debugger,
        Self::Kernel,
        Self::Short,
        Self::Unknown,
    ];

    /// Returns the short name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Cpu => "CPU",
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
            Self::Condition => "condition",
            Self::Semaphore => "semaphore",
            Self::Barrier => "barrier",
            Self::Join => "thread",
            Self::Futex => "futex",
            Self::Sleep => "sleep",
            Self::Pipe => "pipe",
            Self::Poll => "poll",
            Self::Epoll => "epoll",
            Self::Socket => "socket",
            Self::Disk => "disk",
            Self::PageFault => "page fault",
            Self::Terminal => "terminal",
            Self::Child => "child",
            Self::Signal => "signal",
            Self::AsyncIo => "async I/O",
            Self::Notification => "notification",
            Self::FileLock => "file lock",
            Self::KernelLock => "kernel lock",
            Self::Debugger => "debugger",
            Self::Kernel => "kernel",
            Self::Short => "short",
            Self::Unknown => "unknown",
        }
    }

    /// Returns a description of the wait for use in sentences: "1.3 s waiting for a mutex".
    pub fn activity(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Cpu => "runnable",
            Self::Mutex => "waiting for a mutex",
            Self::RwLock => "waiting for a reader-writer lock",
            Self::Condition => "waiting for a condition variable",
            Self::Semaphore => "waiting for a semaphore",
            Self::Barrier => "waiting at a barrier",
            Self::Join => "waiting for a thread to end",
            Self::Futex => "waiting for a futex",
            Self::Sleep => "sleeping",
            Self::Pipe => "waiting for a pipe",
            Self::Poll => "in poll or select",
            Self::Epoll => "in epoll_wait",
            Self::Socket => "waiting for a socket",
            Self::Disk => "waiting for the disk",
            Self::PageFault => "in page faults",
            Self::Terminal => "waiting for the terminal",
            Self::Child => "waiting for a child process",
            Self::Signal => "waiting for a signal",
            Self::AsyncIo => "waiting for asynchronous I/O",
            Self::Notification => "waiting for a notification",
            Self::FileLock => "waiting for a file lock",
            Self::KernelLock => "waiting for a kernel lock",
            Self::Debugger => "stopped by a debugger or signal",
            Self::Kernel => "waiting in the kernel",
            Self::Short => "in short waits",
            Self::Unknown => "blocked, with unknown reason",
        }
    }

    /// Returns the state of threads at this site.
    pub fn state(self) -> ThreadState {
        match self {
            Self::Running => ThreadState::Running,
            Self::Cpu => ThreadState::Runnable,
            _ => ThreadState::Blocked,
        }
    }

    /// Returns the site of a wait on a futex with this purpose; `None` if there is no site for the purpose.
    fn of_futex(is: FutexUse) -> Option<Self> {
        match is {
            FutexUse::Mutex | FutexUse::RuntimeLock => Some(Self::Mutex),
            FutexUse::RwLock => Some(Self::RwLock),
            FutexUse::Condition | FutexUse::Park => Some(Self::Condition),
            FutexUse::Join => Some(Self::Join),
            FutexUse::Sleep => Some(Self::Sleep),
            FutexUse::Semaphore | FutexUse::SemaphoreLock => Some(Self::Semaphore),
            FutexUse::Barrier => Some(Self::Barrier),
            FutexUse::Once | FutexUse::Several | FutexUse::Other => None,
        }
    }

    /// Whether threads at this site may be waiting for work: not for a lock, a disk, or code that runs.
    pub(super) fn is_for_work(self) -> bool {
        matches!(
            self,
            Self::Condition
                | Self::Semaphore
                | Self::Futex
                | Self::Sleep
                | Self::Pipe
                | Self::Poll
                | Self::Epoll
                | Self::Socket
                | Self::Signal
                | Self::AsyncIo
                | Self::Notification
        )
    }

    /// Returns the site encoded in a row's attribute.
    pub(super) fn of_word(word: u64) -> Self {
        usize::try_from(word).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or(Self::Unknown)
    }

    pub(super) fn word(self) -> u64 {
        Self::ALL.iter().position(|site| *site == self).unwrap_or(0) as u64
    }
}

/// Scheduler functions, which are innermost in the stack of each wait. Some of them are called from
/// [`INTERRUPTS`].
const SCHEDULER: &[&str] = &[
    "schedule",
    "__schedule",
    "schedule_timeout",
    "schedule_timeout_interruptible",
    "schedule_timeout_uninterruptible",
    "schedule_timeout_killable",
    "schedule_hrtimeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "schedule_preempt_disabled",
    "schedule_idle",
    "io_schedule",
    "io_schedule_timeout",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
    "preempt_schedule_thunk",
    "__cond_resched",
    "dynamic_cond_resched",
    "raw_irqentry_exit_cond_resched",
    "irqentry_exit",
    "irqentry_exit_cond_resched",
    "irqentry_exit_to_user_mode",
    "exit_to_user_mode_loop",
    "exit_to_user_mode_prepare",
    "el0_interrupt",
    "el1_interrupt",
    "arm64_preempt_schedule_irq",
];

/// Prefixes of the names of functions that enter the kernel for an interrupt. A thread that is preempted by
/// an interrupt waits in the interrupted function.
const INTERRUPTS: &[&str] = &["asm_sysvec_", "asm_common_interrupt", "el0t_64_irq", "el1h_64_irq"];

/// Functions that handle page faults. Any wait inside them is part of the page fault.
const FAULTS: &[&str] = &["exc_page_fault", "do_user_addr_fault", "do_page_fault", "do_mem_abort"];

/// Kernel functions that wait, with the site of the wait. A name with `*` at its end matches all names that
/// begin with it: the functions of a subsystem. All other names are whole, because `do_wait` waits for a
/// child process, and `do_wait_intr_irq` for a notification. Kernels inline different functions, so there is
/// more than one name for most waits.
const KERNEL: &[(&str, WaitSite)] = &[
    ("futex_*", WaitSite::Futex),
    ("__futex_wait", WaitSite::Futex),
    ("do_nanosleep", WaitSite::Sleep),
    ("hrtimer_nanosleep", WaitSite::Sleep),
    ("alarm_timer_nsleep", WaitSite::Sleep),
    ("msleep", WaitSite::Sleep),
    ("msleep_interruptible", WaitSite::Sleep),
    ("usleep_range", WaitSite::Sleep),
    ("usleep_range_state", WaitSite::Sleep),
    ("pipe_*", WaitSite::Pipe),
    ("anon_pipe_*", WaitSite::Pipe),
    ("fifo_open", WaitSite::Pipe),
    ("wait_for_partner", WaitSite::Pipe),
    ("do_poll", WaitSite::Poll),
    ("do_sys_poll", WaitSite::Poll),
    ("poll_schedule_timeout", WaitSite::Poll),
    ("do_select", WaitSite::Poll),
    ("core_sys_select", WaitSite::Poll),
    ("ep_poll", WaitSite::Epoll),
    ("do_epoll_wait", WaitSite::Epoll),
    ("do_epoll_pwait", WaitSite::Epoll),
    ("sk_*", WaitSite::Socket),
    ("unix_*", WaitSite::Socket),
    ("tcp_*", WaitSite::Socket),
    ("udp_*", WaitSite::Socket),
    ("inet_*", WaitSite::Socket),
    ("vsock_*", WaitSite::Socket),
    ("netlink_*", WaitSite::Socket),
    ("sock_*", WaitSite::Socket),
    ("skb_recv*", WaitSite::Socket),
    ("__skb_recv*", WaitSite::Socket),
    ("__skb_wait_for_more_packets", WaitSite::Socket),
    ("wait_for_connect", WaitSite::Socket),
    ("bit_wait_io", WaitSite::Disk),
    ("bit_wait_io_timeout", WaitSite::Disk),
    ("folio_wait_*", WaitSite::Disk),
    ("wait_on_page_*", WaitSite::Disk),
    ("__lock_page*", WaitSite::Disk),
    ("__folio_lock*", WaitSite::Disk),
    ("wait_on_buffer", WaitSite::Disk),
    ("__wait_on_buffer", WaitSite::Disk),
    ("submit_bio_wait", WaitSite::Disk),
    ("blk_*", WaitSite::Disk),
    ("blkdev_*", WaitSite::Disk),
    ("__blk*", WaitSite::Disk),
    ("rq_qos_wait", WaitSite::Disk),
    ("wbt_wait", WaitSite::Disk),
    ("iomap_dio*", WaitSite::Disk),
    ("__iomap_dio*", WaitSite::Disk),
    ("jbd2_*", WaitSite::Disk),
    ("ext4_*", WaitSite::Disk),
    ("xfs_*", WaitSite::Disk),
    ("btrfs_*", WaitSite::Disk),
    ("f2fs_*", WaitSite::Disk),
    ("nfs_*", WaitSite::Disk),
    ("rpc_*", WaitSite::Disk),
    ("fuse_*", WaitSite::Disk),
    ("request_wait_answer", WaitSite::Disk),
    ("balance_dirty_pages*", WaitSite::Disk),
    ("file_write_and_wait*", WaitSite::Disk),
    ("filemap_fdatawait*", WaitSite::Disk),
    ("__filemap_fdatawait*", WaitSite::Disk),
    ("wait_on_inode", WaitSite::Disk),
    ("wait_sb_inodes", WaitSite::Disk),
    ("wb_wait_for_completion", WaitSite::Disk),
    ("sync_inodes_sb", WaitSite::Disk),
    ("sync_filesystem", WaitSite::Disk),
    ("swap_read*", WaitSite::PageFault),
    ("do_swap_page", WaitSite::PageFault),
    ("n_tty_*", WaitSite::Terminal),
    ("tty_*", WaitSite::Terminal),
    ("do_wait", WaitSite::Child),
    ("__do_wait", WaitSite::Child),
    ("do_wait4", WaitSite::Child),
    ("kernel_wait4", WaitSite::Child),
    ("kernel_waitid", WaitSite::Child),
    ("wait_for_vfork_done", WaitSite::Child),
    ("kernel_clone", WaitSite::Child),
    ("__do_sys_vfork", WaitSite::Child),
    ("do_sigtimedwait", WaitSite::Signal),
    ("sigsuspend", WaitSite::Signal),
    ("do_pause", WaitSite::Signal),
    ("__do_sys_pause", WaitSite::Signal),
    ("__x64_sys_pause", WaitSite::Signal),
    ("__arm64_sys_pause", WaitSite::Signal),
    ("signalfd_*", WaitSite::Signal),
    ("io_cqring_wait", WaitSite::AsyncIo),
    ("io_uring_*", WaitSite::AsyncIo),
    ("io_wq*", WaitSite::AsyncIo),
    ("read_events", WaitSite::AsyncIo),
    ("do_io_getevents", WaitSite::AsyncIo),
    ("eventfd_*", WaitSite::Notification),
    ("timerfd_*", WaitSite::Notification),
    ("inotify_*", WaitSite::Notification),
    ("fanotify_*", WaitSite::Notification),
    ("userfaultfd_*", WaitSite::Notification),
    ("do_msgrcv", WaitSite::Notification),
    ("do_msgsnd", WaitSite::Notification),
    ("wq_sleep", WaitSite::Notification),
    ("do_mq_*", WaitSite::Notification),
    ("do_semtimedop", WaitSite::Semaphore),
    ("__do_semtimedop", WaitSite::Semaphore),
    ("flock_lock_inode_wait", WaitSite::FileLock),
    ("posix_lock_inode_wait", WaitSite::FileLock),
    ("locks_lock_inode_wait", WaitSite::FileLock),
    ("__do_sys_flock", WaitSite::FileLock),
    ("__x64_sys_flock", WaitSite::FileLock),
    ("__arm64_sys_flock", WaitSite::FileLock),
    ("do_lock_file_wait", WaitSite::FileLock),
    ("fcntl_setlk", WaitSite::FileLock),
    ("__break_lease", WaitSite::FileLock),
    ("__mutex_lock*", WaitSite::KernelLock),
    ("mutex_lock*", WaitSite::KernelLock),
    ("rwsem_*", WaitSite::KernelLock),
    ("down_*", WaitSite::KernelLock),
    ("__down_*", WaitSite::KernelLock),
    ("percpu_*", WaitSite::KernelLock),
    ("rt_mutex*", WaitSite::KernelLock),
    ("ptrace_stop", WaitSite::Debugger),
    ("do_signal_stop", WaitSite::Debugger),
    ("do_jobctl_trap", WaitSite::Debugger),
    ("get_signal", WaitSite::Debugger),
];

/// Functions of C libraries that wait, for stacks without kernel functions, in the same form. Names have no
/// version, prefix or suffix; see [`library_name`].
const LIBC: &[(&str, WaitSite)] = &[
    ("clock_nanosleep", WaitSite::Sleep),
    ("nanosleep", WaitSite::Sleep),
    ("usleep", WaitSite::Sleep),
    ("sleep", WaitSite::Sleep),
    ("thrd_sleep", WaitSite::Sleep),
    ("epoll_wait", WaitSite::Epoll),
    ("epoll_pwait", WaitSite::Epoll),
    ("epoll_pwait2", WaitSite::Epoll),
    ("poll", WaitSite::Poll),
    ("ppoll", WaitSite::Poll),
    ("select", WaitSite::Poll),
    ("pselect", WaitSite::Poll),
    ("recv", WaitSite::Socket),
    ("recvfrom", WaitSite::Socket),
    ("recvmsg", WaitSite::Socket),
    ("recvmmsg", WaitSite::Socket),
    ("accept", WaitSite::Socket),
    ("accept4", WaitSite::Socket),
    ("connect", WaitSite::Socket),
    ("fsync", WaitSite::Disk),
    ("fdatasync", WaitSite::Disk),
    ("syncfs", WaitSite::Disk),
    ("sync", WaitSite::Disk),
    ("msync", WaitSite::Disk),
    ("wait", WaitSite::Child),
    ("wait3", WaitSite::Child),
    ("wait4", WaitSite::Child),
    ("waitpid", WaitSite::Child),
    ("waitid", WaitSite::Child),
    ("vfork", WaitSite::Child),
    ("sigsuspend", WaitSite::Signal),
    ("sigwait", WaitSite::Signal),
    ("sigwaitinfo", WaitSite::Signal),
    ("sigtimedwait", WaitSite::Signal),
    ("pause", WaitSite::Signal),
    ("mq_receive", WaitSite::Notification),
    ("mq_timedreceive", WaitSite::Notification),
    ("mq_send", WaitSite::Notification),
    ("mq_timedsend", WaitSite::Notification),
    ("msgrcv", WaitSite::Notification),
    ("msgsnd", WaitSite::Notification),
    ("semop", WaitSite::Semaphore),
    ("semtimedop", WaitSite::Semaphore),
    // These require a file with positions: not a pipe, a socket or a terminal.
    ("pread", WaitSite::Disk),
    ("pwrite", WaitSite::Disk),
    ("preadv", WaitSite::Disk),
    ("pwritev", WaitSite::Disk),
    ("splice", WaitSite::Pipe),
    ("tee", WaitSite::Pipe),
    ("vmsplice", WaitSite::Pipe),
    ("send", WaitSite::Socket),
    ("sendto", WaitSite::Socket),
    ("sendmsg", WaitSite::Socket),
    ("sendmmsg", WaitSite::Socket),
    ("flock", WaitSite::FileLock),
    ("lockf", WaitSite::FileLock),
    ("futex_*", WaitSite::Futex),
];

/// Finds a function in a table.
fn find(table: &[(&str, WaitSite)], name: &str) -> Option<WaitSite> {
    let is_it = |entry: &str| match entry.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == entry,
    };
    table.iter().find(|(entry, _)| is_it(entry)).map(|(_, site)| *site)
}

/// Returns a function's public name: `__GI___poll` and `__poll` are `poll`, `__pselect64` is `pselect`.
fn library_name(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let name = name.strip_prefix("__libc_").unwrap_or(name).trim_start_matches('_');
    let name = name.strip_suffix("_nocancel").unwrap_or(name);
    name.strip_suffix("64").unwrap_or(name)
}

/// What the name of a function indicates about a wait.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NameFacts {
    pub(super) is_scheduler: bool,
    is_fault: bool,
    kernel: Option<WaitSite>,
    futex: FutexFunction,
    libc: Option<WaitSite>,
}

impl NameFacts {
    pub(super) fn of(name: &str) -> Self {
        // Ignore the suffix of copies that the compiler made: `finish_wait.isra.0`.
        let plain = name.split('.').next().unwrap_or(name);
        Self {
            is_scheduler: SCHEDULER.contains(&plain)
                || INTERRUPTS.iter().any(|start| plain.starts_with(start)),
            is_fault: FAULTS.contains(&plain),
            kernel: find(KERNEL, plain),
            futex: FutexFunction::of(name),
            libc: find(LIBC, library_name(plain))
                .or((name == MissingStack::ShortWaits.name()).then_some(WaitSite::Short)),
        }
    }
}

/// Returns the wait site of a blocked thread, given the functions of its stack, innermost first.
pub(super) fn site(stack: &[NameFacts]) -> WaitSite {
    if stack.iter().any(|facts| facts.is_fault) {
        return WaitSite::PageFault;
    }
    let first = |pick: fn(&NameFacts) -> Option<WaitSite>| stack.iter().find_map(pick);
    let is_in_kernel = stack.first().is_some_and(|facts| facts.is_scheduler);
    let mechanism = match is_in_kernel {
        true => first(|facts| facts.kernel).unwrap_or(WaitSite::Kernel),
        false => first(|facts| facts.libc).unwrap_or(WaitSite::Unknown),
    };
    match mechanism {
        WaitSite::Futex | WaitSite::Unknown => {
            let found = stack_use(stack.iter().map(|facts| facts.futex));
            found.and_then(|(is, _)| WaitSite::of_futex(is)).unwrap_or(mechanism)
        }
        mechanism => mechanism,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> WaitSite {
        site(&names.iter().map(|name| NameFacts::of(name)).collect::<Vec<_>>())
    }

    #[test]
    fn the_kernel_function_tells_the_mechanism_and_the_library_its_use() {
        let futex = ["schedule", "futex_do_wait", "__futex_wait", "do_futex", "do_syscall_64"];
        let with = |more: &[&str]| of(&[&futex[..], more].concat());
        assert_eq!(with(&["__GI___lll_lock_wait", "pthread_mutex_lock@@GLIBC_2.2.5"]), WaitSite::Mutex);
        assert_eq!(
            with(&["__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2"]),
            WaitSite::Condition
        );
        assert_eq!(with(&["std::sys::sync::mutex::futex::Mutex::lock_contended"]), WaitSite::Mutex);
        assert_eq!(with(&["my_own_lock"]), WaitSite::Futex);
        let gil = ["pthread_cond_timedwait@@GLIBC_2.3.2", "PyCOND_TIMEDWAIT", "take_gil"];
        assert_eq!(with(&gil), WaitSite::Mutex);
        assert_eq!(with(&["pthread_cond_timedwait@@GLIBC_2.3.2", "PyEval_RestoreThread"]), WaitSite::Mutex);
        let monitor = ["pthread_cond_wait@@GLIBC_2.3.2", "os::PlatformEvent::park()", "ObjectMonitor::enter"];
        assert_eq!(with(&monitor), WaitSite::Mutex);
        let sleep = ["pthread_cond_timedwait@@GLIBC_2.3.2", "os::PlatformEvent::park(long)", "JVM_Sleep"];
        assert_eq!(with(&sleep), WaitSite::Sleep);
        assert_eq!(of(&["schedule", "do_nanosleep", "hrtimer_nanosleep"]), WaitSite::Sleep);
        assert_eq!(of(&["schedule", "anon_pipe_read", "vfs_read"]), WaitSite::Pipe);
        assert_eq!(
            of(&["io_schedule", "folio_wait_bit_common", "filemap_fault", "exc_page_fault"]),
            WaitSite::PageFault
        );
        assert_eq!(of(&["io_schedule", "folio_wait_bit_common", "filemap_read"]), WaitSite::Disk);
        assert_eq!(of(&["schedule", "some_driver_wait", "vfs_ioctl"]), WaitSite::Kernel);
        assert_eq!(of(&["schedule", "do_wait_intr_irq", "eventfd_read", "vfs_read"]), WaitSite::Notification);
        assert_eq!(of(&["schedule", "do_wait_intr_irq", "timerfd_read_iter"]), WaitSite::Notification);
        assert_eq!(of(&["schedule", "do_wait", "kernel_wait4", "__do_sys_wait4"]), WaitSite::Child);
        let completion = ["schedule", "schedule_timeout", "__wait_for_common", "wait_for_completion_state"];
        assert_eq!(of(&[&completion[..], &["kernel_clone", "__x64_sys_vfork"]].concat()), WaitSite::Child);
        assert_eq!(of(&[&completion[..], &["wb_wait_for_completion"]].concat()), WaitSite::Disk);
        assert_eq!(of(&["schedule", "locks_lock_inode_wait", "__do_sys_flock"]), WaitSite::FileLock);
        assert_eq!(of(&["schedule", "fcntl_setlk", "do_fcntl"]), WaitSite::FileLock);
        assert_eq!(of(&["schedule", "__break_lease", "do_dentry_open"]), WaitSite::FileLock);
        assert_eq!(of(&["schedule", "userfaultfd_read_iter", "vfs_read"]), WaitSite::Notification);
        assert_eq!(of(&["schedule", "handle_userfault", "exc_page_fault"]), WaitSite::PageFault);
        assert_eq!(of(&["__GI___semtimedop64", "main"]), WaitSite::Semaphore);
        assert_eq!(of(&["__libc_pread64", "main"]), WaitSite::Disk);
        assert_eq!(of(&[]), WaitSite::Unknown);
        assert!(NameFacts::of("asm_sysvec_apic_timer_interrupt").is_scheduler);
        assert!(!NameFacts::of("asm_exc_page_fault").is_scheduler);
        assert_eq!(of(&["clock_nanosleep@@GLIBC_2.17", "main"]), WaitSite::Sleep);
        assert_eq!(of(&["__GI___poll", "main"]), WaitSite::Poll);
        assert_eq!(of(&["__libc_recv", "main"]), WaitSite::Socket);
        // Functions of programs whose names begin like those of the library.
        for name in ["poll_events", "selector", "connect_to_shop", "pause_game", "waiting"] {
            assert_eq!(of(&[name, "main"]), WaitSite::Unknown, "{name}");
        }
        assert_eq!(of(&["[short waits]"]), WaitSite::Short);
    }

    #[test]
    fn words_and_sites_correspond() {
        let names: std::collections::BTreeSet<&str> = WaitSite::ALL.iter().map(|site| site.name()).collect();
        assert!(names.len() == WaitSite::ALL.len() && !names.contains(""), "{names:?}");
        for site in WaitSite::ALL {
            assert_eq!(WaitSite::of_word(site.word()), site);
        }
        assert_eq!(WaitSite::of_word(u64::MAX), WaitSite::Unknown);
    }
}
