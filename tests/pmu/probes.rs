//! Probes and breakpoints in the kernel. The host kernel often lacks them; the guest's kernel has them.

use super::*;

/// Commands that the guest runs. `work 0 N` calls getppid(2) N times.
pub(super) const BATCH: &[(&str, &str)] = &[
    (
        "kprobe_children",
        "$T stat -x, -e kprobe:__arm64_sys_getppid sh -c 'work 0 300; work 0 200; exec work 0 100'",
    ),
    ("kprobe_own", "$T stat -x, -i -e kprobe:__arm64_sys_getppid,kretprobe:__arm64_sys_getppid work 0 300"),
    ("kprobe_offset", "$T stat -x, -e kprobe:__arm64_sys_getppid+0x14 work 0 300"),
    ("kprobe_system", "$T stat -x, -a -e kprobe:__arm64_sys_getppid work 0 300"),
    (
        "kprobe_task",
        "mkfifo /tmp/go; sh -c 'read go; work 0 300; work 0 200; echo unharmed' </tmp/go & task=$!; exec 3>/tmp/go; $T stat -x, -e kprobe:__arm64_sys_getppid -p $task & counting=$!; until grep -q pmc_ /sys/kernel/tracing/kprobe_events; do :; done; sleep 1; echo >&3; wait $counting",
    ),
    (
        "kprobe_record",
        "$T record -e kprobe:__arm64_sys_getppid -o k.data sh -c 'work 0 30; work 0 20'; $T script -i k.data | grep -c getppid; perf script -i k.data | grep -c getppid",
    ),
    (
        "kprobe_module",
        "cp /host/work /tmp; $T stat -x, -e kprobe:9p:v9fs_file_open sh -c 'cat /host/work >/dev/null'",
    ),
    ("kprobe_slip", "$T stat -e kprobe:vfs_raed true"),
    ("kprobe_many", "$T stat -e kprobe:type_show true"),
    (
        "kprobe_one_of_many",
        "place=$($T stat -e kprobe:type_show true 2>&1 | sed -n 's/.*one of \\([^,]*\\).*/\\1/p'); $T stat -x, -e kprobe:$place true",
    ),
    ("kprobe_forbidden", "$T stat -e kprobe:el0t_64_sync_handler true"),
    (
        "kprobe_user",
        "setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all $T stat -e kprobe:vfs_read true",
    ),
    ("mem_kernel", "$T stat -x, -a -e 'mem:&__arm64_sys_getppid' work 0 300"),
    ("mem_kernel_task", "$T stat -e 'mem:&__arm64_sys_getppid:k' work 0 300"),
    ("kprobe_left", "cat /sys/kernel/tracing/kprobe_events"),
];

#[track_caller]
fn counts(name: &str) -> Option<Vec<f64>> {
    let ran = guest(name)?.expect(0);
    Some(rows(&ran, 0, 0).iter().map(Row::value).collect())
}

#[test]
fn kprobes_count_children_and_returns() {
    let Some(children) = counts("kprobe_children") else { return };
    // Shells also call getppid(2).
    assert!((600.0..610.0).contains(&children[0]), "{children:?}");
    assert_eq!(counts("kprobe_own").unwrap(), [300.0, 300.0]);
    assert_eq!(counts("kprobe_offset").unwrap(), [300.0]);
    assert!(counts("kprobe_system").unwrap()[0] >= 300.0);
    assert_eq!(counts("kprobe_one_of_many").unwrap(), [0.0]);
    assert!(counts("kprobe_module").unwrap()[0] >= 1.0);
}

#[test]
fn process_with_kprobe_forks_safely() {
    let Some(ran) = guest("kprobe_task") else { return };
    let ran = ran.expect(0);
    assert_eq!(ran.stdout, "unharmed\n", "{}", ran.stderr);
    assert!((500.0..510.0).contains(&rows(&ran, 0, 0)[0].value()), "{}", ran.stderr);
    assert_eq!(guest("kprobe_left").unwrap().expect(0).stdout, "", "nothing is left in tracefs");
}

#[test]
fn kprobes_are_recorded() {
    let Some(ran) = guest("kprobe_record") else { return };
    let counts: Vec<u32> = ran.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert!(counts.len() == 2 && counts[0] == counts[1] && (50..60).contains(&counts[0]), "{}", ran.stderr);
}

#[test]
fn kernel_breakpoints_work() {
    let Some(count) = counts("mem_kernel") else { return };
    assert!(count[0] >= 300.0, "{count:?}");
    guest("mem_kernel_task")
        .unwrap()
        .says(&["does not allow a breakpoint on its own code", "whole CPUs (-a)"]);
}

#[test]
fn impossible_kprobes_are_explained() {
    let Some(slip) = guest("kprobe_slip") else { return };
    slip.says(&["the kernel has no function `vfs_raed`", "why:", "did you mean `vfs_read`"]);
    guest("kprobe_many").unwrap().says(&["kernel functions are named", "one of _stext+0x"]);
    guest("kprobe_forbidden").unwrap().says(&["cannot be probed", "try:"]);
    guest("kprobe_user").unwrap().says(&["placing a probe requires CAP_PERFMON", "try:"]);
}
