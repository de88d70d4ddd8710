//! Begins the measurement of waits when the events of all threads are on.

use super::OffCpuWriter;

impl OffCpuWriter {
    /// Forgets the stacks that were read from memory. Until a thread's events are on, a stack may belong to
    /// an earlier wait.
    pub(in crate::recording) fn forget_seen(&mut self) {
        self.seen.clear();
        self.last_asked = 0;
    }

    /// Begins the measurement at this time: earlier parts of waits do not count.
    pub(in crate::recording) fn begin_at(&mut self, time: u64) {
        self.begins_at = time;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{
        ALIVE, Blocks, IsPreempted, Returns, SWITCH_ID, Written, record, sample, switch_attr, writer, written,
    };
    use pmc_perfdata::perfdata::{BLOCKED_EVENT, RUNNABLE_EVENT};
    use pmc_perfdata::record::encode::Encoder;
    use pmc_perfdata::record::{Layouts, Records, Thread};
    use pmc_sys::abi::context;

    fn thread(tid: i32) -> Thread {
        Thread { pid: tid, tid }
    }

    #[test]
    fn waits_count_from_the_beginning_of_the_window() {
        let mut encoder = Encoder::new(32);
        [ALIVE, 7, 8, 9, 10].into_iter().for_each(|tid| encoder.comm(thread(tid), b"old"));
        let mut writer = writer(0);
        writer.exist(encoder.bytes());
        let start = writer.initial[&ALIVE].since;
        let chain = || vec![context::USER, 0x1000, 0x2000];
        // This stack was read before the thread's events were on.
        writer.see(thread(7), start + 1, chain());
        writer.forget_seen();
        let layouts = Layouts::new([(&switch_attr(), &[SWITCH_ID][..])]);
        let mut out = Vec::new();
        let mut follow = |writer: &mut super::OffCpuWriter, happening, tid, time| {
            let bytes = record(happening, tid, start + time, false);
            Records::new(&bytes).for_each(|raw| writer.follow(&raw, &layouts, &mut out));
        };
        writer.begin_at(start + 50);
        // Thread 8 waits and runs before the window, thread 9 waits when it begins, and thread 10 for a CPU.
        follow(&mut writer, Blocks, 8, 10);
        follow(&mut writer, Returns, 8, 20);
        follow(&mut writer, Blocks, 9, 30);
        follow(&mut writer, IsPreempted, 10, 35);
        // The events of threads 1 and 7 are on, and they wait since before that.
        assert_eq!(writer.unexplained(10).iter().map(|thread| thread.tid).collect::<Vec<_>>(), [1, 7, 9]);
        writer.see(thread(7), start + 40, chain());
        follow(&mut writer, Returns, 7, 60);
        follow(&mut writer, Returns, 9, 70);
        follow(&mut writer, Returns, 10, 50);
        // The next wait of thread 7 is not the one whose stack was read.
        follow(&mut writer, Blocks, 7, 80);
        assert!(writer.unexplained(10).contains(&thread(7)));
        follow(&mut writer, Returns, 7, 85);
        writer.finish(start + 100, &mut out);
        let blocked = |tid, time, period, frames| sample(BLOCKED_EVENT, tid, start + time, period, frames);
        let got: Vec<Written> = written(&out);
        let want = [
            blocked(7, 60, 10, 3),
            blocked(9, 70, 20, 0),
            sample(RUNNABLE_EVENT, 10, start + 50, 0, 0),
            blocked(7, 85, 5, 0),
            blocked(ALIVE, 100, 50, 0),
        ];
        assert_eq!(got, want);
    }
}
