//! What threads wait for, as indicated by the names of the functions in their stacks.
//!
//! ```text
//!   schedule ◄ futex_do_wait ◄ … ◄ lll_lock_wait ◄ pthread_mutex_lock ◄ Cache::get ◄ main
//!              kernel: a futex     library: a mutex
//! ```
//! Receives the functions of a stack; returns the [`WaitSite`]. All that pmc knows about a site is its row in
//! `wait_sites`. The tables of [`futex_functions`](super::futex_functions) distinguish the purposes of a
//! futex.

use super::futex_functions::{FutexFunction, FutexUse, stack_use};
use crate::session::thread_time::ThreadState;
use pmc_perfdata::record::MissingStack;

/// What pmc knows about a wait site.
struct WaitSiteRow {
    /// Short name for tables.
    name: &'static str,
    /// Description for use in sentences: "1.3 s waiting for a mutex".
    activity: &'static str,
    /// State of the threads at this site.
    state: ThreadState,
    idle: IdleRule,
    /// Kernel functions that wait here. A name with `*` at its end matches all names that begin with it: the
    /// functions of a subsystem. All other names are whole, because `do_wait` waits for a child process, and
    /// `do_wait_intr_irq` for a notification. Kernels inline different functions, so there is more than one
    /// name for most waits.
    kernel: &'static [&'static str],
    /// Functions of C libraries that wait here, for stacks without kernel functions, in the same form. Names
    /// have no version, prefix or suffix; see [`library_name`].
    library: &'static [&'static str],
}

/// Which threads at a site are idle, because they may be waiting for work: not for a lock, a disk, or code
/// that runs. `sampled/idle.rs` applies the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleRule {
    /// None because of the site.
    Never,
    /// Threads of services.
    Service,
    /// Threads of services, and those of pools, which wait for most of their time.
    Pool,
}

/// A site of blocked threads, without functions.
const BLOCKED: WaitSiteRow = WaitSiteRow {
    name: "",
    activity: "",
    state: ThreadState::Blocked,
    idle: IdleRule::Never,
    kernel: &[],
    library: &[],
};

/// Defines the enum of wait sites and their rows. Each site has a name and an activity; all other fields are
/// those of [`BLOCKED`] unless the site sets them.
macro_rules! wait_sites {
    ($($(#[doc = $about:literal])+ $site:ident($name:literal, $activity:literal) {
        $($field:ident: $value:expr,)*
    })+) => {
        /// What a thread waits for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitSite {
            $($(#[doc = $about])+ $site,)+
        }

        impl WaitSite {
            const ALL: &[Self] = &[$(Self::$site),+];

            fn row(self) -> &'static WaitSiteRow {
                match self {
                    $(Self::$site => {
                        const { &WaitSiteRow { name: $name, activity: $activity, $($field: $value,)* ..BLOCKED } }
                    })+
                }
            }
        }
    };
}

wait_sites! {
    /// Nothing: the thread is running.
    Running("running", "running") {
        state: ThreadState::Running,
    }
    /// A CPU.
    Cpu("CPU", "runnable") {
        state: ThreadState::Runnable,
    }
    /// A lock that another thread holds.
    Mutex("mutex", "waiting for a mutex") {}
    /// A reader-writer lock.
    RwLock("rwlock", "waiting for a reader-writer lock") {}
    /// A condition variable.
    Condition("condition", "waiting for a condition variable") {
        idle: IdleRule::Pool,
    }
    /// A semaphore.
    Semaphore("semaphore", "waiting for a semaphore") {
        idle: IdleRule::Pool,
        kernel: &["do_semtimedop", "__do_semtimedop"],
        library: &["semop", "semtimedop"],
    }
    /// A barrier.
    Barrier("barrier", "waiting at a barrier") {}
    /// The end of another thread.
    Join("thread", "waiting for a thread to end") {}
    /// A futex with another purpose.
    Futex("futex", "waiting for a futex") {
        idle: IdleRule::Service,
        kernel: &["futex_*", "__futex_wait"],
        library: &["futex_*"],
    }
    /// The end of a sleep.
    Sleep("sleep", "sleeping") {
        idle: IdleRule::Service,
        kernel: &[
            "do_nanosleep", "hrtimer_nanosleep", "alarm_timer_nsleep", "msleep", "msleep_interruptible",
            "usleep_range", "usleep_range_state",
        ],
        library: &["clock_nanosleep", "nanosleep", "usleep", "sleep", "thrd_sleep"],
    }
    /// A pipe.
    Pipe("pipe", "waiting for a pipe") {
        idle: IdleRule::Service,
        kernel: &["pipe_*", "anon_pipe_*", "fifo_open", "wait_for_partner"],
        library: &["splice", "tee", "vmsplice"],
    }
    /// Any of several descriptors (`poll`, `select`).
    Poll("poll", "in poll or select") {
        idle: IdleRule::Service,
        kernel: &["do_poll", "do_sys_poll", "poll_schedule_timeout", "do_select", "core_sys_select"],
        library: &["poll", "ppoll", "select", "pselect"],
    }
    /// Any of several descriptors (`epoll`).
    Epoll("epoll", "in epoll_wait") {
        idle: IdleRule::Service,
        kernel: &["ep_poll", "do_epoll_wait", "do_epoll_pwait"],
        library: &["epoll_wait", "epoll_pwait", "epoll_pwait2"],
    }
    /// A socket.
    Socket("socket", "waiting for a socket") {
        idle: IdleRule::Service,
        kernel: &[
            "sk_*", "unix_*", "tcp_*", "udp_*", "inet_*", "vsock_*", "netlink_*", "sock_*", "skb_recv*",
            "__skb_recv*", "__skb_wait_for_more_packets", "wait_for_connect",
        ],
        library: &[
            "recv", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "connect", "send", "sendto",
            "sendmsg", "sendmmsg",
        ],
    }
    /// A disk or file system.
    Disk("disk", "waiting for the disk") {
        kernel: &[
            "bit_wait_io", "bit_wait_io_timeout", "folio_wait_*", "wait_on_page_*", "__lock_page*",
            "__folio_lock*", "wait_on_buffer", "__wait_on_buffer", "submit_bio_wait", "blk_*", "blkdev_*",
            "__blk*", "rq_qos_wait", "wbt_wait", "iomap_dio*", "__iomap_dio*", "jbd2_*", "ext4_*", "xfs_*",
            "btrfs_*", "f2fs_*", "nfs_*", "rpc_*", "fuse_*", "request_wait_answer", "balance_dirty_pages*",
            "file_write_and_wait*", "filemap_fdatawait*", "__filemap_fdatawait*", "wait_on_inode",
            "wait_sb_inodes", "wb_wait_for_completion", "sync_inodes_sb", "sync_filesystem",
        ],
        // `pread` and the like require a file with positions: not a pipe, a socket or a terminal.
        library: &["fsync", "fdatasync", "syncfs", "sync", "msync", "pread", "pwrite", "preadv", "pwritev"],
    }
    /// A page of a file or of swap space.
    PageFault("page fault", "in page faults") {
        kernel: &["swap_read*", "do_swap_page"],
    }
    /// A terminal.
    Terminal("terminal", "waiting for the terminal") {
        kernel: &["n_tty_*", "tty_*"],
    }
    /// A child process.
    Child("child", "waiting for a child process") {
        kernel: &[
            "do_wait", "__do_wait", "do_wait4", "kernel_wait4", "kernel_waitid", "wait_for_vfork_done",
            "kernel_clone", "__do_sys_vfork",
        ],
        library: &["wait", "wait3", "wait4", "waitpid", "waitid", "vfork"],
    }
    /// A signal.
    Signal("signal", "waiting for a signal") {
        idle: IdleRule::Service,
        kernel: &[
            "do_sigtimedwait", "sigsuspend", "do_pause", "__do_sys_pause", "__x64_sys_pause",
            "__arm64_sys_pause", "signalfd_*",
        ],
        library: &["sigsuspend", "sigwait", "sigwaitinfo", "sigtimedwait", "pause"],
    }
    /// Asynchronous I/O (`io_uring`, `io_getevents`).
    AsyncIo("async I/O", "waiting for asynchronous I/O") {
        idle: IdleRule::Service,
        kernel: &["io_cqring_wait", "io_uring_*", "io_wq*", "read_events", "do_io_getevents"],
    }
    /// A notification descriptor (`eventfd`, `timerfd`, `inotify`).
    Notification("notification", "waiting for a notification") {
        idle: IdleRule::Pool,
        kernel: &[
            "eventfd_*", "timerfd_*", "inotify_*", "fanotify_*", "userfaultfd_*", "do_msgrcv", "do_msgsnd",
            "wq_sleep", "do_mq_*",
        ],
        library: &["mq_receive", "mq_timedreceive", "mq_send", "mq_timedsend", "msgrcv", "msgsnd"],
    }
    /// A lock of a file (`flock`, `fcntl`) that another process or descriptor holds.
    FileLock("file lock", "waiting for a file lock") {
        kernel: &[
            "flock_lock_inode_wait", "posix_lock_inode_wait", "locks_lock_inode_wait", "__do_sys_flock",
            "__x64_sys_flock", "__arm64_sys_flock", "do_lock_file_wait", "fcntl_setlk", "__break_lease",
        ],
        library: &["flock", "lockf"],
    }
    /// A lock in the kernel.
    KernelLock("kernel lock", "waiting for a kernel lock") {
        kernel: &["__mutex_lock*", "mutex_lock*", "rwsem_*", "down_*", "__down_*", "percpu_*", "rt_mutex*"],
    }
    /// A debugger.
    Debugger("debugger", "stopped by a debugger or signal") {
        kernel: &["ptrace_stop", "do_signal_stop", "do_jobctl_trap", "get_signal"],
    }
    /// Something else in the kernel.
    Kernel("kernel", "waiting in the kernel") {}
    /// Waits below the threshold (`--off-cpu-thresh`), whose stacks are not recorded.
    Short("short", "in short waits") {}
    /// Unknown, because there is no stack.
    Unknown("unknown", "blocked, with unknown reason") {}
}

impl WaitSite {
    /// Returns the short name for tables.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns a description of the wait for use in sentences: "1.3 s waiting for a mutex".
    pub fn activity(self) -> &'static str {
        self.row().activity
    }

    /// Returns the state of threads at this site.
    pub fn state(self) -> ThreadState {
        self.row().state
    }

    /// Returns the rule by which threads at this site are idle.
    pub(super) fn idle_rule(self) -> IdleRule {
        self.row().idle
    }

    /// Returns the site of a wait on a futex with this purpose; `None` if there is no site for the purpose.
    fn of_futex(purpose: FutexUse) -> Option<Self> {
        match purpose {
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

/// Returns the first site that has this function in one of the lists of its row.
fn site_of(function: &str, list: fn(&WaitSiteRow) -> &'static [&'static str]) -> Option<WaitSite> {
    let is_it = |entry: &&str| match entry.strip_suffix('*') {
        Some(start) => function.starts_with(start),
        None => function == *entry,
    };
    WaitSite::ALL.iter().copied().find(|site| list(site.row()).iter().any(is_it))
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
    library: Option<WaitSite>,
}

impl NameFacts {
    pub(super) fn from_name(name: &str) -> Self {
        // Ignore the suffix of copies that the compiler made: `finish_wait.isra.0`.
        let plain = name.split('.').next().unwrap_or(name);
        Self {
            is_scheduler: SCHEDULER.contains(&plain)
                || INTERRUPTS.iter().any(|start| plain.starts_with(start)),
            is_fault: FAULTS.contains(&plain),
            kernel: site_of(plain, |row| row.kernel),
            futex: FutexFunction::named(name),
            library: site_of(library_name(plain), |row| row.library)
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
        false => first(|facts| facts.library).unwrap_or(WaitSite::Unknown),
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

    fn site_of(names: &[&str]) -> WaitSite {
        site(&names.iter().map(|name| NameFacts::from_name(name)).collect::<Vec<_>>())
    }

    #[test]
    fn the_kernel_function_tells_the_mechanism_and_the_library_its_use() {
        let futex = ["schedule", "futex_do_wait", "__futex_wait", "do_futex", "do_syscall_64"];
        let with = |more: &[&str]| site_of(&[&futex[..], more].concat());
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
        assert_eq!(site_of(&["schedule", "do_nanosleep", "hrtimer_nanosleep"]), WaitSite::Sleep);
        assert_eq!(site_of(&["schedule", "anon_pipe_read", "vfs_read"]), WaitSite::Pipe);
        assert_eq!(
            site_of(&["io_schedule", "folio_wait_bit_common", "filemap_fault", "exc_page_fault"]),
            WaitSite::PageFault
        );
        assert_eq!(site_of(&["io_schedule", "folio_wait_bit_common", "filemap_read"]), WaitSite::Disk);
        assert_eq!(site_of(&["schedule", "some_driver_wait", "vfs_ioctl"]), WaitSite::Kernel);
        assert_eq!(
            site_of(&["schedule", "do_wait_intr_irq", "eventfd_read", "vfs_read"]),
            WaitSite::Notification
        );
        assert_eq!(site_of(&["schedule", "do_wait_intr_irq", "timerfd_read_iter"]), WaitSite::Notification);
        assert_eq!(site_of(&["schedule", "do_wait", "kernel_wait4", "__do_sys_wait4"]), WaitSite::Child);
        let completion = ["schedule", "schedule_timeout", "__wait_for_common", "wait_for_completion_state"];
        assert_eq!(
            site_of(&[&completion[..], &["kernel_clone", "__x64_sys_vfork"]].concat()),
            WaitSite::Child
        );
        assert_eq!(site_of(&[&completion[..], &["wb_wait_for_completion"]].concat()), WaitSite::Disk);
        assert_eq!(site_of(&["schedule", "locks_lock_inode_wait", "__do_sys_flock"]), WaitSite::FileLock);
        assert_eq!(site_of(&["schedule", "fcntl_setlk", "do_fcntl"]), WaitSite::FileLock);
        assert_eq!(site_of(&["schedule", "__break_lease", "do_dentry_open"]), WaitSite::FileLock);
        assert_eq!(site_of(&["schedule", "userfaultfd_read_iter", "vfs_read"]), WaitSite::Notification);
        assert_eq!(site_of(&["schedule", "handle_userfault", "exc_page_fault"]), WaitSite::PageFault);
        assert_eq!(site_of(&["__GI___semtimedop64", "main"]), WaitSite::Semaphore);
        assert_eq!(site_of(&["__libc_pread64", "main"]), WaitSite::Disk);
        assert_eq!(site_of(&[]), WaitSite::Unknown);
        assert!(NameFacts::from_name("asm_sysvec_apic_timer_interrupt").is_scheduler);
        assert!(!NameFacts::from_name("asm_exc_page_fault").is_scheduler);
        assert_eq!(site_of(&["clock_nanosleep@@GLIBC_2.17", "main"]), WaitSite::Sleep);
        assert_eq!(site_of(&["__GI___poll", "main"]), WaitSite::Poll);
        assert_eq!(site_of(&["__libc_recv", "main"]), WaitSite::Socket);
        // Functions of programs whose names begin like those of the library.
        for name in ["poll_events", "selector", "connect_to_shop", "pause_game", "waiting"] {
            assert_eq!(site_of(&[name, "main"]), WaitSite::Unknown, "{name}");
        }
        assert_eq!(site_of(&["[short waits]"]), WaitSite::Short);
    }

    #[test]
    fn each_function_belongs_to_one_site() {
        let lists: [fn(&WaitSiteRow) -> &'static [&'static str]; 2] = [|row| row.kernel, |row| row.library];
        for (site, list) in WaitSite::ALL.iter().flat_map(|site| lists.map(|list| (*site, list))) {
            for entry in list(site.row()) {
                let other = WaitSite::ALL.iter().find(|other| {
                    let is_it = |of_other: &&str| {
                        let start = entry.trim_end_matches('*');
                        of_other == entry
                            || of_other.strip_suffix('*').is_some_and(|of| start.starts_with(of))
                    };
                    **other != site && list(other.row()).iter().any(is_it)
                });
                assert_eq!(other, None, "{entry} of {site:?}");
            }
        }
    }

    #[test]
    fn words_and_sites_correspond() {
        let names: std::collections::BTreeSet<&str> = WaitSite::ALL.iter().map(|site| site.name()).collect();
        assert!(names.len() == WaitSite::ALL.len() && !names.contains(""), "{names:?}");
        for site in WaitSite::ALL {
            assert_eq!(WaitSite::of_word(site.word()), *site);
        }
        assert_eq!(WaitSite::of_word(u64::MAX), WaitSite::Unknown);
    }
}
