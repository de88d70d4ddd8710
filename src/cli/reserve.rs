//! Options of `pmc reserve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use pmc_compat::reserve::ReserveRequest;

/// Reserve the hardware counters
#[derive(Debug, Args)]
#[command(
    version,
    disable_version_flag = true,
    after_help = "\
The agent pmdaperfevent of Performance Co-Pilot uses hardware counters on every CPU. It releases them while any process holds a shared lock on the first byte of its lock file. This command holds that lock while COMMAND runs, or without COMMAND until it receives SIGINT, SIGHUP or SIGTERM. It requires no privileges.

pmc takes the lock first. If an agent runs, pmc then waits 200 ms, twice the agent's polling interval, before it starts COMMAND or goes to the background. Reservations are shared: other profilers that also reserved the counters still compete with yours, and pmc names them.

pmc passes options after COMMAND to it, and returns its exit status: 127 if it does not exist, 126 if it cannot be executed, 128 + signal if a signal ended it. pmc forwards signals to COMMAND. Without COMMAND, the exit status is 0 if a signal released the counters or a background process holds them, 1 if they are not reserved, and 2 for an invalid command line.

The lock file is perfevent/perflock below PCP_PMDAS_DIR. pmc takes PCP_PMDAS_DIR from the environment, else from the file named by PCP_CONF, else from $PCP_DIR/etc/pcp.conf or /etc/pcp.conf. The default is /var/lib/pcp/pmdas.

Examples:
  pmc reserve perf record -a sleep 10      reserve while another profiler runs
  pmc reserve                              reserve until Ctrl-C
  ln -s $(command -v pmc) perfalloc        with this name, pmc behaves like PCP's perfalloc
See docs/reservation.md."
)]
pub struct ReserveArgs {
    /// Stay in the foreground (the default)
    #[arg(short = 'D', overrides_with = "background")]
    pub(crate) foreground: bool,

    /// Go to the background once the lock is held; errors are reported before that
    #[arg(short = 'd', overrides_with = "foreground")]
    pub(crate) background: bool,

    /// Lock file to use instead of PCP's
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Create the lock file if it is missing, for an agent that starts later (PCP's directory requires root)
    #[arg(long)]
    pub(crate) create: bool,

    /// Print a JSON object to stdout once the lock is held: file, holder, other holders, agents
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the version
    #[arg(short = 'v', long = "version", action = ArgAction::Version)]
    pub(crate) version: (),

    /// Command to run while the counters are reserved
    #[arg(value_name = "COMMAND", trailing_var_arg = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl ReserveArgs {
    /// Converts the options.
    pub(crate) fn request(self) -> ReserveRequest {
        ReserveRequest {
            file: self.file,
            create: self.create,
            background: self.background,
            json: self.json,
            command: self.command,
        }
    }
}
