//! Options of `pmc reserve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Reserve the hardware counters
#[derive(Debug, Args)]
#[command(
    version,
    disable_version_flag = true,
    after_help = "\
The agent pmdaperfevent of Performance Co-Pilot keeps hardware counters busy on every CPU. It lets go of them while anybody \
holds a shared lock on the first byte of its lock file. This command holds that lock: while COMMAND runs, or without COMMAND \
until it gets SIGINT, SIGHUP or SIGTERM. No privilege is needed.

The lock is taken first; where an agent runs, it is then given 200 ms, twice its round, before COMMAND starts or the shell \
gets its prompt back. Reservations share: another profiler that has reserved too still competes with yours, and is named.

COMMAND's own options are left alone, and its exit status is passed on: 127 when it does not exist, 126 when it cannot be \
executed, 128 + signal when a signal ended it. Signals sent to pmc go on to it. Without COMMAND the exit status is 0 when \
a signal released the counters or the background holds them, 1 when they are not reserved, 2 for a wrong command line.

The lock file is perfevent/perflock below PCP_PMDAS_DIR: from the environment, else from the file named by PCP_CONF, else \
$PCP_DIR/etc/pcp.conf, else /etc/pcp.conf; by default /var/lib/pcp/pmdas.

Examples:
  pmc reserve perf record -a sleep 10      hold it while another profiler works
  pmc reserve                              hold it until Ctrl-C
  ln -s $(command -v pmc) perfalloc        under that name pmc behaves as PCP's perfalloc does
More: docs/reservation.md"
)]
pub struct ReserveArgs {
    /// Stay in the foreground (the default)
    #[arg(short = 'D', overrides_with = "background")]
    pub foreground: bool,

    /// Run in the background once the lock is held; failures are reported first
    #[arg(short = 'd', overrides_with = "foreground")]
    pub background: bool,

    /// Lock file to use instead of PCP's
    #[arg(short = 'f', value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Create a missing lock file, for an agent that starts later (requires root in PCP's directory)
    #[arg(long)]
    pub create: bool,

    /// Print a JSON object to stdout once the lock is held: file, holder, other holders, agents
    #[arg(long)]
    pub json: bool,

    /// Print the version
    #[arg(short = 'v', long = "version", action = ArgAction::Version)]
    pub version: (),

    /// Command to run while the counters are reserved
    #[arg(value_name = "COMMAND", trailing_var_arg = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
