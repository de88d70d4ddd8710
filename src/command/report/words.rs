//! Words for the numbers in rows: names of threads, cgroups, sockets of CPUs.

use crate::profile::sampled::table::Words;
use crate::session::Session;

/// The words of a recording.
pub(in crate::command) struct Names<'a> {
    session: &'a Session,
    comms: Vec<String>,
}

impl<'a> Names<'a> {
    pub(in crate::command) fn new(session: &'a Session) -> Self {
        let comms = session.history.comms().map(|comm| String::from_utf8_lossy(comm).into_owned()).collect();
        Self { session, comms }
    }

    /// A name by its number in the history.
    pub(in crate::command) fn named(&self, comm: u32) -> Option<&str> {
        self.comms.get(comm as usize).map(String::as_str)
    }
}

impl Words for Names<'_> {
    fn comm(&self, comm: u32) -> String {
        match self.named(comm) {
            Some(name) => name.to_owned(),
            // perf's name for those without; the sign of the number was cut off to make room for the mark.
            None => format!(":{}", (comm << 1) as i32 >> 1),
        }
    }

    fn cgroup(&self, id: u64) -> String {
        match self.session.cgroups.get(&id) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => id.to_string(),
        }
    }

    fn socket(&self, cpu: u64) -> Option<i64> {
        let topology = self.session.reader.features().cpu_topology.as_ref()?;
        topology.cpus.get(usize::try_from(cpu).ok()?).map(|(_, socket)| i64::from(*socket))
    }

    fn payload(&self, _number: u64) -> String {
        String::new()
    }
}
