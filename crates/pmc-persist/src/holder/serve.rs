//! The holder's loop: each connection carries one request, which is answered immediately. Connections without
//! a valid request are closed.
//!
//! Receives a run directory, and publishes the held events there. No client can stall the holder. Sockets
//! never block, and a client must send its request within [`TIME_TO_ASK`]. If there are too many connections,
//! the holder closes the oldest connection of the user who has the most. Connections that hang up, send too
//! much, or send an invalid request are closed without further effect.
//!
//! Users are identified by the kernel (`SO_PEERCRED`) at the time of the connection. Capabilities are not
//! checked, because a process may have changed its capabilities before it sends the request.
//!
//! | who                        | may                                                                |
//! |----------------------------|--------------------------------------------------------------------|
//! | the holder's user, root    | everything                                                         |
//! | any other user             | read or copy what is shared; one copy per second, the same for all |

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, chmod};
use rustix::net::sockopt::{socket_acceptconn, socket_peercred, socket_type};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
    socket_with,
};
use rustix::time::{ClockId, clock_gettime};

use super::directory_watch::DirectoryWatch;
use super::entry::HeldEvent;
use pmc_recording::persistent::directory::{Publisher, RunDirectory, check_name, is_called};
use pmc_recording::persistent::message::{
    HolderAnswer, HolderRequest, LONGEST_ANSWER, LONGEST_REQUEST, RefusalMessage, receive, send,
};
use pmc_recording::persistent::{EntryDefinition, SharingLevel};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::cpu_watch::CpuWatch;
use pmc_sys::sys::credentials::Limits;
use pmc_sys::sys::signal::{self, Signals};
use pmc_sys::sys::{background, descriptor, lacks_resources, limits, wait};

/// Maximum time from the connection to the request.
const TIME_TO_ASK: Duration = Duration::from_secs(2);
/// Maximum number of simultaneous connections.
const MOST_CLIENTS: usize = 256;
/// Number of connections to accept before serving existing ones. It is less than the maximum, so that a
/// request is answered before its connection becomes the oldest and could be closed.
const MAX_ACCEPTED: usize = 64;
/// Pause while the process has no descriptor for another connection.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);
/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Time after which a new holder ends if no entry was added.
const FIRST_ENTRY: Duration = Duration::from_secs(20);
/// Maximum time to wait for the previous holder to end.
const PREDECESSOR: Duration = Duration::from_secs(5);
/// Delay between the last removal and publishing the run directory again. When a directory is removed, its
/// files are deleted one by one, so the holder waits until this is complete.
const REMOVAL: Duration = Duration::from_secs(1);
/// Maximum interval between attempts to restore the run directory.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of entries. A request for more is probably a mistake.
const MOST_ENTRIES: usize = 1000;
/// Minimum interval between new copies of the same rings for other users.
const SAME_COPY: Duration = Duration::from_secs(1);

/// Holds events until a signal arrives. With `until_empty`, the process first leaves the terminal's session,
/// and also ends when it holds no more entries.
///
/// # Errors
/// Fails if another holder is already running, or if the run directory or the socket cannot be used.
pub fn hold(directory: RunDirectory, until_empty: bool) -> Result<()> {
    if until_empty {
        background::leave_session().map_err(|error| Error::io("leaving the terminal", error))?;
    }
    let signals = Signals::catch(&signal::ENDING).map_err(|error| Error::io("catching signals", error))?;
    let publisher = claim(directory, until_empty)?;
    let listener = match given(publisher.directory())? {
        Some(listener) => listener,
        None => listen_at(publisher.directory())?,
    };
    if let Some(most) = Limits::own().open_files_most {
        let _ = limits::raise_open_files(most);
    }
    let mut holder = HolderServer::new(publisher, listener);
    for lost in holder.publisher.directory().lost()? {
        say::note(format!(
            "lost: {} ({}): {}",
            lost.entry.definition.name, lost.entry.definition.event, lost.why
        ));
    }
    say::note(format!("listening at {}", holder.publisher.directory().socket().display()));
    let ended = serve(&mut holder, &signals, until_empty);
    let why = match &ended {
        Ok(None) => return Ok(()),
        Ok(Some(signal)) => format!("its holder was killed by signal {signal}"),
        Err(error) => format!("its holder failed: {}", error.headline()),
    };
    let left: Vec<_> = holder.entries.values().map(|held| held.entry.clone()).collect();
    for entry in &left {
        say::note(format!("no longer held: {} ({})", entry.definition.name, entry.definition.event));
    }
    // The run directory may have been removed, or belong to another holder by now.
    let reported = match holder.publisher.has_lock() {
        true => holder.publisher.lose(&left, now(), &why),
        false => Ok(()),
    };
    ended.and(reported)
}

fn claim(directory: RunDirectory, waits: bool) -> Result<Publisher> {
    let begun = Instant::now();
    loop {
        if let Some(publisher) = Publisher::claim(directory.clone(), now())? {
            return Ok(publisher);
        }
        if !waits || begun.elapsed() > PREDECESSOR {
            return Err(Error::new(format!("another holder has {}", directory.path().display()))
                .try_this("pmc persist list shows its entries"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The listening socket.
struct Listener {
    socket: OwnedFd,
    /// The path of the socket if this process created it, in which case the path is removed at the end.
    path: Option<PathBuf>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.path.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

/// Returns the listening socket that the parent process passed to this process, if any.
fn given(directory: &RunDirectory) -> Result<Option<Listener>> {
    let sockets = descriptor::handed_over();
    if sockets == 0 {
        return Ok(None);
    }
    let path = directory.socket();
    let look = || -> io::Result<Option<OwnedFd>> {
        let socket = descriptor::duplicate(3)?;
        let address = SocketAddrUnix::try_from(getsockname(&socket)?)?;
        let is_ours = socket_type(&socket)? == SocketType::SEQPACKET
            && socket_acceptconn(&socket)?
            && address.path_bytes() == Some(path.as_os_str().as_encoded_bytes());
        descriptor::set_nonblocking(&socket)?;
        Ok(is_ours.then(|| socket.into()))
    };
    let looked = look().map_err(|error| Error::io("using the socket passed in LISTEN_FDS", error));
    match (sockets, looked?) {
        (1, Some(socket)) => Ok(Some(Listener { socket, path: None })),
        _ => Err(Error::new("LISTEN_FDS must pass exactly one socket of the right type")
            .try_this(format!("ListenSequentialPacket={} in the socket's unit", path.display()))),
    }
}

fn listen_at(directory: &RunDirectory) -> Result<Listener> {
    let path = directory.socket();
    let listen = || -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // Clients must not find a socket that does not listen yet. This process has the lock, so files with
        // these names are left from a holder that has ended.
        let unfinished = path.with_file_name("new");
        let _ = std::fs::remove_file(&unfinished);
        bind(&socket, &SocketAddrUnix::new(unfinished.as_path())?)?;
        // Access is checked for each request.
        chmod(&unfinished, Mode::from_raw_mode(0o666))?;
        listen(&socket, BACKLOG)?;
        std::fs::rename(&unfinished, &path)?;
        Ok(socket)
    };
    let listener = listen().map(|socket| Listener { socket, path: Some(path.clone()) });
    listener.map_err(|error| {
        let is_long = error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error());
        let error = Error::io(format!("listening at {}", path.display()), error);
        if is_long { error.why("a socket path is limited to 107 bytes") } else { error }
    })
}

/// Returns the seconds since 1970.
fn now() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// A client that has connected but not sent its request yet.
struct Client {
    socket: OwnedFd,
    uid: u32,
    since: Instant,
}

/// Serves until a signal arrives or there are no more entries. Returns the signal.
fn serve(holder: &mut HolderServer, signals: &Signals, until_empty: bool) -> Result<Option<i32>> {
    let begun = Instant::now();
    let mut clients: Vec<Client> = Vec::new();
    let mut had_entries = false;
    loop {
        had_entries |= !holder.entries.is_empty();
        let is_empty = until_empty && clients.is_empty() && holder.entries.is_empty();
        if is_empty && (had_entries || begun.elapsed() >= FIRST_ENTRY) {
            return Ok(None);
        }
        let deadline = match clients.first() {
            Some(oldest) => Some(oldest.since + TIME_TO_ASK),
            None => is_empty.then(|| begun + FIRST_ENTRY),
        };
        let deadline = deadline.into_iter().chain(holder.next_check).min();
        let ready = {
            let listener = &holder.listener.socket;
            let mut fds = vec![PollFd::new(signals, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            // Without uevents, check the CPUs whenever a request wakes the loop.
            let cpus = holder.cpus.as_ref().map_or(listener.as_fd(), AsFd::as_fd);
            fds.push(PollFd::from_borrowed_fd(cpus, PollFlags::IN));
            let removals = holder.removals.as_ref().map_or(listener.as_fd(), AsFd::as_fd);
            fds.push(PollFd::from_borrowed_fd(removals, PollFlags::IN));
            let watched = holder.entries.values().filter_map(HeldEvent::process_watch);
            fds.extend(watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty())));
            fds.extend(clients.iter().map(|client| PollFd::new(&client.socket, PollFlags::IN)));
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            wait::poll(&mut fds, left).map_err(|error| Error::io("waiting for requests", error))?;
            fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>()
        };
        if let Some(caught) = signals.next() {
            return Ok(Some(caught.signal));
        }
        if ready[2] && holder.cpus.as_ref().is_none_or(|cpus| cpus.changes().any) {
            holder.follow_cpus();
        }
        if ready[3] && holder.removals.as_ref().is_some_and(DirectoryWatch::has_removals) {
            holder.check_after(REMOVAL);
        }
        if holder.next_check.take_if(|at| Instant::now() >= *at).is_some() {
            holder.publish_again(&mut clients);
        }
        let (ends, asking) = ready[4..].split_at(ready.len() - 4 - clients.len());
        if ends.contains(&true) {
            holder.follow_ends();
        }
        let mut asking = asking.iter();
        clients.retain(|client| match asking.next() {
            Some(true) if holder.answer(client) => false,
            _ => client.since.elapsed() < TIME_TO_ASK,
        });
        if ready[1] {
            accept(&holder.listener.socket, &mut clients);
        }
    }
}

/// Accepts waiting connections. If there are too many, closes the oldest connection of the user who has the
/// most.
fn accept(listener: &OwnedFd, clients: &mut Vec<Client>) {
    for _ in 0..MAX_ACCEPTED {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(listener, flags) {
            Ok(socket) => socket,
            Err(error) if lacks_resources(error) => return std::thread::sleep(OUT_OF_DESCRIPTORS),
            Err(_) => return,
        };
        let Ok(peer) = socket_peercred(&socket) else { continue };
        clients.push(Client { socket, uid: peer.uid.as_raw(), since: Instant::now() });
        if clients.len() > MOST_CLIENTS {
            let mut connections: HashMap<u32, usize> = HashMap::new();
            clients.iter().for_each(|client| *connections.entry(client.uid).or_default() += 1);
            let most = connections.into_iter().max_by_key(|(_, count)| *count).map(|(uid, _)| uid);
            if let Some(at) = clients.iter().position(|client| Some(client.uid) == most) {
                clients.remove(at);
            }
        }
    }
}

/// The held events, and the directory in which they are published.
struct HolderServer {
    host: Host,
    own: u32,
    /// The listener, which must be dropped before the directory is released.
    listener: Listener,
    /// Watches for CPUs going online or offline; `None` if uevents are not available.
    cpus: Option<CpuWatch>,
    /// The watch for removals; `None` if inotify is not available.
    removals: Option<DirectoryWatch>,
    /// Whether `listener` owns the socket in the run directory.
    socket_is_ours: bool,
    /// Time of the next check of the run directory, after something was removed from it.
    next_check: Option<Instant>,
    /// The time before the next attempt to restore the run directory, if the last one failed.
    pause: Option<Duration>,
    publisher: Publisher,
    entries: BTreeMap<u64, HeldEvent>,
    /// The latest copy of each entry made for other users, with the time it was made.
    copies: HashMap<u64, (Instant, [OwnedFd; 2])>,
}

impl HolderServer {
    fn new(publisher: Publisher, listener: Listener) -> Self {
        Self {
            host: Host::live(),
            own: rustix::process::geteuid().as_raw(),
            listener,
            cpus: CpuWatch::new().ok(),
            removals: DirectoryWatch::new(publisher.folders()).ok(),
            socket_is_ours: true,
            next_check: None,
            pause: None,
            publisher,
            entries: BTreeMap::new(),
            copies: HashMap::new(),
        }
    }

    fn is_owner(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own
    }

    /// Answers the request waiting in the socket. Returns `false` if it has not arrived yet.
    fn answer(&mut self, client: &Client) -> bool {
        let is_owner = self.is_owner(client.uid);
        let answered = match receive::<HolderRequest>(&client.socket, LONGEST_REQUEST, is_owner) {
            Ok(Some((request, descriptors))) => self.carry_out(request, descriptors, client.uid),
            // The client has hung up.
            Ok(None) => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => Err(Error::usage(format!("invalid request: {error}"))),
        };
        let (answer, descriptors) = answered
            .unwrap_or_else(|error| (HolderAnswer::Refused(RefusalMessage::from(&error)), Vec::new()));
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        // If a client does not accept the answer immediately, it gets no answer.
        let _ = send(&client.socket, &answer, LONGEST_ANSWER, &descriptors);
        true
    }

    fn carry_out(
        &mut self,
        request: HolderRequest,
        descriptors: Vec<OwnedFd>,
        uid: u32,
    ) -> Result<(HolderAnswer, Vec<OwnedFd>)> {
        let is_owner = self.is_owner(uid);
        let answer = match request {
            HolderRequest::Read { entry } => {
                HolderAnswer::Counts(self.find(&entry, is_owner, SharingLevel::Counts)?.counts()?)
            }
            HolderRequest::Snapshot { entry, after } => {
                let held = self.find(&entry, is_owner, SharingLevel::Records)?;
                if is_owner || after.is_none() {
                    return Ok((HolderAnswer::Copied, held.copy(after.as_deref())?.into()));
                }
                let id = held.entry.id;
                return Ok((HolderAnswer::Copied, self.copy_for_others(id)?));
            }
            _ if !is_owner => {
                return Err(Error::new("this holder is another user's")
                    .why("only its owner and root can add, rename or remove entries"));
            }
            HolderRequest::Add(definition) => {
                let name = definition.name.clone();
                self.add(&name, |host, id| {
                    let held = HeldEvent::open(host, definition, id, now())?;
                    held.start()?;
                    Ok(held)
                })?
            }
            HolderRequest::AddTogether(definitions) => self.add_together(definitions)?,
            HolderRequest::Adopt { name, events } => {
                if let Some(held) = self.entries.values().find(|held| held.has_any(&events)) {
                    let name = &held.entry.definition.name;
                    return Err(Error::usage("these events are already held")
                        .why(format!("the holder names them {name}")));
                }
                self.add(&name.clone(), |_, id| HeldEvent::adopt(name, &events, descriptors, id, now()))?
            }
            HolderRequest::Attach { entry } => {
                let (open, descriptors) = self.find(&entry, true, SharingLevel::Nothing)?.hand_over()?;
                return Ok((HolderAnswer::Given(Box::new(open)), descriptors));
            }
            HolderRequest::Rename { entry, name } => {
                self.check_free(&name)?;
                let id = self.find(&entry, true, SharingLevel::Nothing)?.entry.id;
                let Some(held) = self.entries.get_mut(&id) else { return Err(unknown(&entry, "")) };
                let mut after = held.entry.clone();
                after.definition.name = name;
                self.publisher.rename(&held.entry, &after)?;
                held.entry = after;
                HolderAnswer::Done
            }
            HolderRequest::Remove { entry } => {
                match self.find(&entry, true, SharingLevel::Nothing).map(|held| held.entry.id) {
                    Ok(id) => {
                        self.remove(id)?;
                        HolderAnswer::Done
                    }
                    Err(error) => match self.publisher.forget(&entry)? {
                        true => HolderAnswer::Done,
                        false => return Err(error),
                    },
                }
            }
        };
        Ok((answer, Vec::new()))
    }

    /// Closes an entry.
    ///
    /// # Errors
    /// Fails if the entry's files cannot be removed. The entry is still held in this case, since clients see
    /// it in the run directory.
    fn remove(&mut self, id: u64) -> Result<()> {
        if let Some(held) = self.entries.get(&id)
            && let Err(error) = self.publisher.withdraw(&held.entry)
        {
            return Err(self.publisher.publish(&held.entry).err().unwrap_or(error));
        }
        self.copies.remove(&id);
        self.entries.remove(&id).into_iter().for_each(HeldEvent::close);
        Ok(())
    }

    fn add(
        &mut self,
        name: &str,
        open: impl FnOnce(&Host, u64) -> Result<HeldEvent>,
    ) -> Result<HolderAnswer> {
        self.check_free(name)?;
        self.check_room(1)?;
        let id = self.publisher.take_id()?;
        let held = open(&self.host, id)?;
        self.publisher.publish(&held.entry)?;
        let entry = held.entry.clone();
        self.entries.insert(id, held);
        Ok(HolderAnswer::Held(Box::new(entry)))
    }

    fn check_after(&mut self, time: Duration) {
        self.next_check = Some(Instant::now() + time);
    }

    /// Restores files that were removed from the run directory, without which clients cannot find the
    /// entries. If this fails, the events stay open, and the holder tries again later: the disk may have
    /// space again, the user may log in again, or another holder in this directory may end.
    fn publish_again(&mut self, clients: &mut Vec<Client>) {
        let entries = self.entries.values().map(|held| &held.entry);
        if self.socket_is_ours && self.publisher.is_complete(entries) {
            self.pause = None;
            return;
        }
        let path = self.publisher.directory().path().display().to_string();
        if let Err(error) = self.restore(clients) {
            if self.pause.is_none() {
                let held = self.entries.len();
                say::note(format!("cannot publish {held} held events at {path} again: {}", error.headline()));
                say::note("the events continue, and the holder tries again from time to time");
            }
            let pause = self.pause.map_or(REMOVAL, |pause| (pause * 2).min(LONGEST_PAUSE));
            self.pause = Some(pause);
            return self.check_after(pause);
        }
        self.pause = None;
        self.removals = DirectoryWatch::new(self.publisher.folders()).ok();
        // Files may have been removed before this watch started, so check again later.
        self.check_after(REMOVAL);
        say::note(format!("published again at {path}"));
    }

    fn restore(&mut self, clients: &mut Vec<Client>) -> Result<()> {
        let Self { publisher, entries, listener, .. } = self;
        let entries: Vec<_> = entries.values().map(|held| &held.entry).collect();
        let had_lock = publisher.has_lock();
        let restored = publisher.restore(&entries, now());
        // If the lock was lost, a socket at this path belongs to another holder, which may have been killed.
        // With the lock, a socket that is missing was removed. The old listener must remove neither that
        // socket nor the next one.
        if !had_lock || !publisher.has_lock() || !publisher.directory().socket().exists() {
            listener.path = None;
            self.socket_is_ours = false;
        }
        restored?;
        if !self.socket_is_ours {
            let before = std::mem::replace(&mut self.listener, listen_at(self.publisher.directory())?);
            self.socket_is_ours = true;
            // Clients may have connected until the new socket took the place of the old one.
            accept(&before.socket, clients);
        }
        Ok(())
    }

    /// Handles processes that have exited.
    fn follow_ends(&mut self) {
        for held in self.entries.values_mut() {
            if held.process_watch().is_some() && held.follow_end(now()) {
                // If publishing fails, clients continue to read the old entry.
                let _ = self.publisher.publish(&held.entry);
            }
        }
    }

    /// Holds either all of these events or none of them. Opens all events before starting the first one.
    fn add_together(&mut self, definitions: Vec<EntryDefinition>) -> Result<HolderAnswer> {
        self.check_room(definitions.len())?;
        let mut opened: Vec<HeldEvent> = Vec::new();
        for definition in definitions {
            self.check_free(&definition.name)?;
            if opened.iter().any(|held| held.entry.definition.name == definition.name) {
                return Err(Error::usage(format!("two events are named {}", definition.name)));
            }
            let id = self.publisher.take_id()?;
            opened.push(HeldEvent::open(&self.host, definition, id, now())?);
        }
        opened.iter().try_for_each(HeldEvent::start)?;
        let user_only = opened.iter().any(|held| held.entry.user_only);
        let ids: Vec<u64> = opened.iter().map(|held| held.entry.id).collect();
        for held in opened {
            if let Err(error) = self.publisher.publish(&held.entry) {
                let _ = ids.iter().try_for_each(|id| self.remove(*id));
                return Err(error);
            }
            self.entries.insert(held.entry.id, held);
        }
        Ok(HolderAnswer::Started { user_only })
    }

    fn check_room(&self, more: usize) -> Result<()> {
        if self.entries.len() + more > MOST_ENTRIES {
            return Err(Error::new(format!("the limit of {MOST_ENTRIES} held events is reached"))
                .try_this("pmc persist rm"));
        }
        Ok(())
    }

    /// Handles CPUs that have gone online or offline.
    fn follow_cpus(&mut self) {
        for held in self.entries.values_mut() {
            let followed = held.follow_cpus(&self.host).and_then(|changed| match changed {
                true => self.publisher.publish(&held.entry),
                false => Ok(()),
            });
            if let Err(error) = followed {
                say::note(format!(
                    "{}: not counting on every CPU: {}",
                    held.entry.definition.name,
                    error.headline()
                ));
            }
        }
    }

    fn check_free(&self, name: &str) -> Result<()> {
        check_name(name)?;
        match self.entries.values().find(|held| held.entry.definition.name == name) {
            Some(held) => Err(Error::usage(format!("a persistent event named {name} already exists"))
                .why(format!("it is {}, with id {}", held.entry.definition.event, held.entry.id))
                .try_this(format!("use another name, or first: pmc persist rm {name}"))),
            None => Ok(()),
        }
    }

    /// Finds the entry with this name or id, if the client owns it or it is shared at this level.
    fn find(&mut self, word: &str, is_owner: bool, share: SharingLevel) -> Result<&mut HeldEvent> {
        let held: Vec<&str> = self.entries.values().map(|held| held.entry.definition.name.as_str()).collect();
        let names = held.join(", ");
        let found = self.entries.values_mut().find(|held| is_called(&held.entry, word));
        let found = found.ok_or_else(|| unknown(word, &names))?;
        if is_owner || found.entry.definition.share >= share {
            return Ok(found);
        }
        let name = &found.entry.definition.name;
        Err(Error::new(format!("{name} belongs to another user and does not share its {}", share.name()))
            .try_this(format!("its owner can share it: pmc persist add … --share {}", share.name())))
    }

    /// Returns a copy for other users. At most one copy is made per second, regardless of the number of
    /// requests. This limits memory use and the time for which rings are paused.
    fn copy_for_others(&mut self, id: u64) -> Result<Vec<OwnedFd>> {
        self.copies.retain(|_, (at, _)| at.elapsed() < SAME_COPY);
        if let (false, Some(held)) = (self.copies.contains_key(&id), self.entries.get_mut(&id)) {
            self.copies.insert(id, (Instant::now(), held.copy(Some(&[]))?));
        }
        let copy = self.copies.get(&id).map(|(_, copy)| copy).into_iter().flatten();
        let again: io::Result<Vec<OwnedFd>> = copy.map(OwnedFd::try_clone).collect();
        again.map_err(|error| Error::io("sending a copy of the ring buffers to the client", error))
    }
}

fn unknown(word: &str, held: &str) -> Error {
    let error = Error::new(format!("no persistent event `{word}`"));
    if held.is_empty() {
        error.try_this("pmc persist add NAME -e EVENT")
    } else {
        error.why(format!("held events: {held}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::connect;

    #[test]
    fn clients_that_connect_before_the_socket_is_replaced_are_served() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = Publisher::claim(RunDirectory::at(folder.path().join("run")), 1).unwrap().unwrap();
        let directory = publisher.directory().clone();
        let mut holder = HolderServer::new(publisher, listen_at(&directory).unwrap());
        let socket = || {
            let new = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
            let new = new.unwrap();
            connect(&new, &SocketAddrUnix::new(directory.socket()).unwrap()).unwrap();
            new
        };
        let early = socket();
        std::fs::remove_file(directory.path().join("lock")).unwrap();
        let mut clients = Vec::new();
        holder.publish_again(&mut clients);
        assert_eq!(clients.len(), 1);
        let late = socket();
        accept(&holder.listener.socket, &mut clients);
        assert_eq!(clients.len(), 2);
        let request = HolderRequest::Read { entry: "missing".to_owned() };
        for socket in [early, late] {
            send(&socket, &request, LONGEST_REQUEST, &[]).unwrap();
            assert!(holder.answer(&clients.remove(0)));
            let answer = receive::<HolderAnswer>(&socket, LONGEST_ANSWER, false).unwrap();
            assert!(matches!(answer, Some((HolderAnswer::Refused(_), _))));
        }
    }
}
