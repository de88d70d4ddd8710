//! Options of `pmc config`.

use clap::Args;

use crate::config::SettingAction;

/// Show or change the settings that pmc reads from perf's configuration files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc config -l                           all settings
  pmc config report.children              one key
  pmc config report.children=false        for this user, in ~/.perfconfig
pmc uses perf's files: only $PERF_CONFIG, or /etc/perfconfig and ~/.perfconfig. docs/report.md lists the supported keys.")]
pub struct ConfigArgs {
    /// Keys to show (KEY) or set (KEY=VALUE)
    #[arg(value_name = "KEY[=VALUE]")]
    pub(crate) settings: Vec<SettingAction>,

    /// Show all settings
    #[arg(short, long, conflicts_with = "settings")]
    pub(crate) list: bool,

    /// Use only /etc/perfconfig
    #[arg(long, conflicts_with = "user")]
    pub(crate) system: bool,

    /// Use only ~/.perfconfig
    #[arg(long)]
    pub(crate) user: bool,
}
