//! Symbols against other tools: small programs are compiled here, and every address is compared with
//! `addr2line`, `nm`, `c++filt` and the kernel's own lists.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use crate::kit;

mod debug_files;
mod hostile;
mod machine;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSegment};
use pmc_symbols::address::FileOffset;
use pmc_symbols::symbol::RunningKernel;
use pmc_symbols::symbol::{
    AddressFrames, Depth, ModuleId, SymbolModule, SymbolOptions, SymbolQuery, SymbolRequest, Symbolizer,
};

const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int inner(int x) {
    volatile int y = x * 3;
    return y + 1;
}
static inline __attribute__((always_inline)) int middle(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += inner(i);
    return sum;
}
__attribute__((noinline)) int outer(int x) {
    int a = middle(x);
    return a ^ inner(a);
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 10;
    printf("%d\n", outer(n));
    return 0;
}
"#;

const CPP: &str = r#"
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace shop {
template <typename T, int N> struct Basket {
    std::vector<T> things;
    void add(T t) { things.push_back(t); }
    T total() const { T sum{}; for (auto &t : things) sum += t * N; return sum; }
};
struct Clerk { virtual ~Clerk() = default; virtual int serve(int) const = 0; };
struct Fast : Clerk { int serve(int n) const override; };
__attribute__((noinline)) int Fast::serve(int n) const {
    Basket<int, 3> basket;
    for (int i = 0; i < n; i++) basket.add(i * 7 % 13);
    std::sort(basket.things.begin(), basket.things.end(), [](int a, int b) { return a > b; });
    return basket.total();
}
}
int main(int argc, char **) {
    shop::Fast fast;
    std::map<std::string, int> seen;
    seen["a"] = fast.serve(argc * 100);
    std::printf("%d\n", seen["a"]);
}
"#;

/// A compiled program in its own folder.
struct Built {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Built {
    fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn run(&self, program: &str, args: &[&str]) -> String {
        run(program, args, self.folder())
    }
}

#[track_caller]
fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let output = kit::oracle::ask_until_answered(|_| {
        let mut command = Command::new(program);
        command.args(args).current_dir(folder);
        command
    });
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn build(compiler: &str, source: (&str, &str), args: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(source.0), source.1).unwrap();
    let mut all = vec![source.0, "-o", "prog"];
    all.extend(args);
    run(compiler, &all, folder.path());
    let path = folder.path().join("prog");
    Built { _folder: folder, path }
}

/// SymbolOptions that ignore the machine's caches and debug files.
fn plain() -> SymbolOptions {
    SymbolOptions {
        symfs: None,
        debug_dirs: Vec::new(),
        build_id_caches: Vec::new(),
        debuginfod: None,
        debuginfod_cache: None,
        placeholders: false,
        kallsyms: None,
        vmlinux: None,
        cache: None,
        alone: false,
        files: true,
        live: true,
        kernel: RunningKernel::live(),
        owners: Default::default(),
    }
}

/// Converts addresses of the file to file offsets.
fn offsets(path: &Path, addresses: &[u64]) -> Vec<SymbolQuery> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let place = |address: &u64| {
        let segment =
            file.segments().find(|s| address.wrapping_sub(s.address()) < s.size()).expect("a segment");
        SymbolQuery::from(FileOffset(address - segment.address() + segment.file_range().0))
    };
    addresses.iter().map(place).collect()
}

/// Start and end address of the text section.
fn text(path: &Path) -> (u64, u64) {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    (text.address(), text.address() + text.size())
}

fn resolve(
    options: SymbolOptions,
    module: SymbolModule,
    queries: &[SymbolQuery],
    depth: Depth,
) -> (Symbolizer, ModuleId, AddressFrames) {
    let mut symbolizer = Symbolizer::new(options).unwrap();
    let id = symbolizer.add(module);
    let answer = symbolizer.resolve(&[SymbolRequest { module: id, queries }], depth, &|_| {});
    (symbolizer, id, answer)
}

/// The frames of one address as `function file:line`, innermost first, with raw names.
fn spelled(symbolizer: &Symbolizer, answer: &AddressFrames, index: usize) -> Vec<String> {
    let names = symbolizer.names();
    let spell = |frame: &pmc_symbols::symbol::ResolvedFrame| {
        let place = match frame.source {
            Some(s) if s.line > 0 => format!("{}:{}", names.file(s.file), s.line),
            Some(s) => format!("{}:?", names.file(s.file)),
            None => "??:?".into(),
        };
        format!("{} {place}", names.function(frame.function).raw)
    };
    answer.frames(index).iter().map(spell).collect()
}

/// The frames that GNU addr2line prints for each address.
fn gnu(path: &Path, addresses: &[u64]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let list: Vec<String> = addresses.iter().map(|a| format!("{a:#x}")).collect();
    let at_file = folder.path().join("addresses");
    std::fs::write(&at_file, list.join("\n")).unwrap();
    let at = format!("@{}", at_file.display());
    let said = run("addr2line", &["-e", path.to_str().unwrap(), "-a", "-i", "-f", &at], folder.path());
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (discriminator").next().unwrap();
        all.last_mut().unwrap().push(format!("{line} {place}"));
    }
    assert_eq!(all.len(), addresses.len());
    all
}

/// An address, pmc's frames and addr2line's frames.
type Difference = (u64, Vec<String>, Vec<String>);

/// Compares every address of the text section. Returns the number of addresses and the differences.
fn compare(built: &Built, options: SymbolOptions, step: u64) -> (usize, Vec<Difference>) {
    let (start, end) = text(&built.path);
    let addresses: Vec<u64> = (start..end).step_by(step as usize).collect();
    let theirs = gnu(&built.path, &addresses);
    let queries = offsets(&built.path, &addresses);
    let (symbolizer, id, answer) =
        resolve(options, SymbolModule::file(&built.path), &queries, Depth::Inlines);
    let mut other = Vec::new();
    for (index, their) in theirs.iter().enumerate() {
        assert_eq!(symbolizer.address(id, queries[index]), Some(addresses[index]));
        let our = spelled(&symbolizer, &answer, index);
        // The linker's name for a part of a function (`f.cold`) is more precise than the compiler's. A file
        // that is known only from the symbol table, without a line, does not count as a source location.
        let equal = |our: &String, their: &String| {
            let ((name, place), (their_name, their_place)) =
                (our.rsplit_once(' ').unwrap(), their.rsplit_once(' ').unwrap());
            // If the compiler gave an inlined function no linkage name, addr2line shows the outer symbol's
            // name. If the outer function has no linkage name, pmc shows the symbol's.
            let better = name.starts_with("_Z") != their_name.starts_with("_Z");
            // A constructor has several names for the same code.
            let alike = |raw: &str| pmc_symbols::symbol::demangle::demangle(raw);
            let same_name = name == their_name
                || alike(name).is_some() && alike(name) == alike(their_name)
                || name.split('.').next() == Some(their_name)
                || better;
            same_name && (place == their_place || place.ends_with(":?") && their_place.ends_with(":?"))
        };
        let same = our.len() == their.len() && our.iter().zip(their).all(|(our, their)| equal(our, their));
        if !same {
            other.push((addresses[index], our, their.clone()));
        }
    }
    (addresses.len(), other)
}
