//! Options of `pmc mcp`.

use clap::Args;

use pmc_command::options::settings::RecordingSettings;

/// Answer AI agents' questions about recordings (Model Context Protocol on stdin and stdout).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  claude mcp add pmc -- pmc mcp                     read recordings only
  claude mcp add pmc -- pmc mcp --allow-record      also record, and compare commands
The tools and their answers: docs/mcp.md.")]
pub struct McpArgs {
    /// Allow the tools record and stat_compare, which run commands as this user
    #[arg(long)]
    pub(crate) allow_record: bool,

    /// With --allow-record: maximum duration of a recording or comparison, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) max_seconds: u64,

    /// With --allow-record: maximum size of a recording, such as 100M
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = pmc_command::values::size)]
    pub(crate) max_size: u64,

    /// perf's settings for recordings.
    #[command(flatten)]
    pub(crate) settings: RecordingSettings,
}
