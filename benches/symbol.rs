//! Resolves two thousand addresses of a large program, with and without inlined functions.
//!
//! `PMC_BENCH_PROGRAM` names the program; one with over 100 MB of debug information shows the most. The
//! default is this bench's own file. `cargo bench --bench symbol`.

use std::path::PathBuf;

use divan::Bencher;
use object::{Object, ObjectSection, ObjectSegment};
use pmc_symbols::address::FileOffset;
use pmc_symbols::symbol::{Depth, SymbolModule, SymbolOptions, SymbolQuery, SymbolRequest, Symbolizer};

fn main() {
    divan::main();
}

fn program() -> PathBuf {
    std::env::var_os("PMC_BENCH_PROGRAM").map_or_else(|| "/proc/self/exe".into(), PathBuf::from)
}

/// Addresses spread evenly over the text section.
fn queries(count: u64) -> Vec<SymbolQuery> {
    let bytes = std::fs::read(program()).expect("the program can be read");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let text = file.section_by_name(".text").expect("a text section");
    let segment = file
        .segments()
        .find(|s| text.address().wrapping_sub(s.address()) < s.size())
        .expect("a segment that holds the text");
    let start = text.address() - segment.address() + segment.file_range().0;
    (0..count).map(|n| SymbolQuery::from(FileOffset(start + text.size() / count * n))).collect()
}

fn options() -> SymbolOptions {
    SymbolOptions {
        cache: None,
        debug_dirs: Vec::new(),
        build_id_caches: Vec::new(),
        ..SymbolOptions::from_environment()
    }
}

fn resolve(bencher: Bencher<'_, '_>, depth: Depth, options: &SymbolOptions) {
    let queries = queries(2000);
    bencher.bench(|| {
        let mut symbolizer = Symbolizer::new(options.clone()).expect("threads");
        let module = symbolizer.add(SymbolModule::file(program()));
        symbolizer.resolve(&[SymbolRequest { module, queries: &queries }], depth, &|_| {})
    });
}

#[divan::bench(sample_count = 10)]
fn names(bencher: Bencher<'_, '_>) {
    resolve(bencher, Depth::Names, &options());
}

#[divan::bench(sample_count = 10)]
fn inlines(bencher: Bencher<'_, '_>) {
    resolve(bencher, Depth::Inlines, &options());
}

#[divan::bench(sample_count = 10)]
fn inlines_again_from_the_cache(bencher: Bencher<'_, '_>) {
    let folder = std::env::temp_dir().join(format!("pmc-bench-{}", std::process::id()));
    let options = SymbolOptions { cache: Some(folder.clone()), ..options() };
    resolve(bencher, Depth::Inlines, &options);
    let _ = std::fs::remove_dir_all(folder);
}
