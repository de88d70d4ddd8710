//! Recording: the files of `pmc record`, the tables of `pmc top`, and perf's file format, written and read.

#[path = "../kit/mod.rs"]
mod kit;

mod attacked;
mod build_id_cache;
mod perfdata;
mod perfdata_hostile;
mod profile;
mod readme;
mod record;
mod top;
