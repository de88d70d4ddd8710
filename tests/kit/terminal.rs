//! A real terminal: a tmux server with one window, in which a program runs and gets keys.

use std::ffi::OsStr;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{wait_for, wait_for_child, wait_for_screen};

/// A separate tmux server. Dropping it ends the program.
pub struct Tmux {
    /// Holds the socket. Each server has another folder: a server that is still ending would refuse the
    /// client of the next one at the same socket.
    folder: tempfile::TempDir,
}

impl Tmux {
    /// Starts a program with its arguments, or a shell line, in a window of this size. `options` are more
    /// options of tmux' `new-session`.
    #[track_caller]
    pub fn start(width: u16, height: u16, options: &[&str], program: &[&str]) -> Self {
        let tmux = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let (width, height) = (width.to_string(), height.to_string());
        let session = ["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height];
        tmux.run(&[&session, options, program].concat());
        tmux
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args([OsStr::new("-u"), OsStr::new("-S"), self.folder.path().join("socket").as_os_str()]);
        command.env("TERM", "xterm-256color");
        command
    }

    /// Runs a tmux command and returns its output.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let ran = self.command().args(arguments).output().expect("tmux starts");
        assert!(ran.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    #[track_caller]
    pub fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "--"], keys].concat());
    }

    /// Types a text whose words are not names of keys.
    #[track_caller]
    pub fn text(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Waits until the program has read its keys. Otherwise it could read Escape and the next key together,
    /// as Alt plus that key.
    #[track_caller]
    pub fn wait_until_typed(&self) {
        use std::os::unix::fs::OpenOptionsExt;
        let name = self.fact("pane_tty");
        let without_control = rustix::fs::OFlags::NOCTTY.bits() as i32;
        let terminal = std::fs::OpenOptions::new().read(true).custom_flags(without_control).open(name);
        let terminal = terminal.expect("root may open it");
        // tmux delivers the keys before it replies to the next command.
        self.fact("pane_tty");
        // Only poll(2) passes on keys that the kernel has not yet delivered to the terminal's reader. FIONREAD
        // does not count them.
        wait_for("the program reads its keys", || {
            let mut input = [PollFd::new(&terminal, PollFlags::IN)];
            poll(&mut input, Some(&Timespec::default())).expect("a terminal can be polled") == 0
        });
    }

    #[track_caller]
    pub fn shown(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Text of the terminal with its colours, which include the cursor's line.
    #[track_caller]
    pub fn painted(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"])
    }

    /// A variable of tmux, such as `alternate_on`.
    #[track_caller]
    pub fn fact(&self, name: &str) -> String {
        self.run(&["display-message", "-p", &format!("#{{{name}}}")]).trim().to_owned()
    }

    /// Waits until the terminal satisfies `is_there`.
    #[track_caller]
    pub fn until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        wait_for_screen(what, || self.shown(), is_there)
    }

    #[track_caller]
    pub fn until_shown(&self, text: &str) -> String {
        self.until(text, |shown| shown.contains(text))
    }

    /// The process that the window's shell runs.
    #[track_caller]
    pub fn child(&self) -> u32 {
        wait_for_child(self.fact("pane_pid").parse().expect("a pid"))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It has ended already if its program has.
        drop(self.command().arg("kill-server").output());
    }
}
