//! Groups of options that several commands have.

pub mod filter_places;
pub mod recording_file;
pub mod recording_options;
pub mod sample_filter;
pub mod screen_options;
pub mod settings;
pub mod stack_options;
pub mod symbol_files;
