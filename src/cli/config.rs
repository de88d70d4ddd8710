//! `pmc config`: what can be typed.

use clap::Args;

/// Show and change perf's settings, as far as pmc heeds them: for perf, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc config -l                           what is set
  pmc config report.children              one key
  pmc config report.children=false        for this user, in ~/.perfconfig
The files are perf's: $PERF_CONFIG alone, or /etc/perfconfig and ~/.perfconfig. Keys that pmc heeds: docs/report.md.")]
pub struct Config {
    /// Keys to show, or to set
    #[arg(value_name = "KEY[=VALUE]")]
    pub keys: Vec<String>,

    /// Show everything that is set
    #[arg(short, long, conflicts_with = "keys")]
    pub list: bool,

    /// Only /etc/perfconfig
    #[arg(long, conflicts_with = "user")]
    pub system: bool,

    /// Only ~/.perfconfig
    #[arg(long)]
    pub user: bool,
}
