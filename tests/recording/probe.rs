//! `pmc probe`: probes with variables from DWARF, compared with perf's and with what the program prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::lab::Lab;
use crate::kit::{self, Ran, oracle};
use pmc_sys::host::Host;
use pmc_sys::host::probe_event::ProbeList;

/// A program with the kinds of variables that probes read. It prints what they are.
const SHOP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct part { int id; unsigned char kind; unsigned flag : 3; unsigned level : 5; };
struct item {
    const char *name;
    char label[16];
    long price;
    struct part parts[4];
    struct item *next;
    struct { short inner; };
};
struct big { long a, b, c; };
int counter;
static long total = 3;
int table[8] = { 1, 2, 3, 4, 5 };

static inline int twice(int v)
{
    int w = v * 2;
    asm volatile("" : "+r"(w));
    return w + 1;
}

__attribute__((noinline, noclone)) static long price(struct item *item, int count, const char *tag)
{
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += item->price * item->parts[i % 4].id;
        total += sum;
    }
    counter++;
    if (tag)
        sum += twice(count);
    return sum;
}

__attribute__((noinline, noclone)) unsigned char narrow(unsigned char small, short neg)
{
    asm volatile("" ::: "memory");
    return small + neg;
}

__attribute__((noinline, noclone)) long whole(struct big big, int *numbers)
{
    asm volatile("" ::: "memory");
    return big.a + numbers[1];
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    struct item second = { .name = "second", .price = 7 };
    struct item item = { .name = "first", .label = "label-one", .next = &second, .inner = -4 };
    int numbers[] = { 41, -42 };
    struct big big = { 1, 2, 3 };
    for (int i = 0; i < 4; i++)
        item.parts[i] = (struct part){ .id = i + 1, .kind = 10 + i, .flag = i, .level = 20 + i };
    for (int r = 0; r < rounds; r++) {
        item.price = 11 + r;
        printf("name=\"%s\" label=\"%s\" price=%ld id=%d level=%u next=%ld inner=%d count=%d tag=\"%s\" counter=%d "
               "total=%ld table=%d\n", item.name, item.label, item.price, item.parts[2].id, item.parts[1].level,
               item.next->price, item.inner, r + 1, "sale", counter, total, table[3]);
        long sum = price(&item, r + 1, argc > 100 ? NULL : "sale");
        narrow(r + 250, -r);
        whole(big, numbers);
        fprintf(stderr, "%ld %d\n", sum, twice(r));
    }
    return 0;
}
"#;

/// Compiler flags: unoptimized and optimized code, both versions of DWARF.
const BUILDS: [(&str, &[&str]); 4] = [
    ("o0v4", &["-O0", "-gdwarf-4"]),
    ("o0v5", &["-O0", "-gdwarf-5"]),
    ("o2v4", &["-O2", "-gdwarf-4"]),
    ("o2v5", &["-O2", "-gdwarf-5"]),
];

fn probe(program: &Path, options: &[&str]) -> Ran {
    kit::pmc().args(["probe", "-x"]).arg(program).args(options).output().expect("the binary starts").into()
}

fn perf_probe(perf: &Path, program: &Path, options: &[&str]) -> String {
    let file = program.to_str().expect("a plain path");
    oracle::says(perf, &[&["probe", "-x", file][..], options].concat())
}

fn need_dwarf_in(perf: &Path) -> bool {
    let built = oracle::says(perf, &["version", "--build-options"]).to_lowercase();
    let reads =
        built.lines().any(|line| (line.contains("dwarf:") || line.contains("libdw:")) && line.contains("on"));
    kit::need("perf-dwarf", reads, "perf was built without DWARF")
}

/// Deletes the probes of a test when it ends.
struct ProbeGroup(String);

impl ProbeGroup {
    /// Chooses a group. Returns `None` if this user cannot change probes.
    fn new(name: &str) -> Option<Self> {
        let may_change = Host::live().change_probes(ProbeList::Programs).is_ok();
        kit::need("uprobe-events", may_change, "this user may not define probes in tracefs")
            .then(|| Self(format!("{name}_{}", std::process::id())))
    }

    fn listed(&self) -> String {
        kit::run(&["probe", "-l", &format!("{}:*", self.0)]).expect(0).stdout
    }
}

impl Drop for ProbeGroup {
    fn drop(&mut self) {
        let _ = kit::run(&["probe", "-q", "-d", &format!("{}:*", self.0)]);
    }
}

#[test]
fn definitions_equal_perfs() {
    let Some(lab) = Lab::new() else { return };
    const SAME: [&str; 16] = [
        "price",
        "price count tag",
        "price%return $retval",
        "price:4",
        "price:5 sum",
        "price+4",
        "twice",
        "narrow small neg",
        "narrow $vars",
        "whole numbers[1] big.b",
        "price item->name:string item->label:string item->parts[2].id item->next->price item->inner",
        "main argv[0]:string",
        "a=price count:x32 c=count:u",
        "g:b=price $params",
        "price %di r=%si:u8 +8(%di):s64",
        "LINE",
    ];
    let total = 1 + SHOP.lines().position(|line| line.contains("total += sum")).unwrap();
    let line = format!("shop.c:{total}");
    for perf in oracle::perfs().iter().filter(|perf| need_dwarf_in(perf)) {
        for (name, flags) in BUILDS {
            let folder = lab.path(name);
            std::fs::create_dir_all(&folder).unwrap();
            let program = build(&folder, flags);
            for definition in SAME.map(|text| if text == "LINE" { &line } else { text }) {
                let theirs = perf_probe(perf, &program, &["-D", definition]);
                let ours = probe(&program, &["-D", definition]).expect(0).stdout;
                assert_eq!(ours, theirs, "{} {name}: {definition}", perf.display());
                assert!(!ours.is_empty());
            }
            for lines in ["price", "price:4-6", "narrow", "shop.c:39-46"] {
                let (theirs, ours) = (
                    perf_probe(perf, &program, &["-L", lines]),
                    probe(&program, &["-L", lines]).expect(0).stdout,
                );
                // perf 7.2 refuses all ranges.
                if !theirs.is_empty() {
                    assert_eq!(ours, theirs, "{} {name}: -L {lines}", perf.display());
                }
            }
            for place in ["narrow", "whole"] {
                let (theirs, ours) = (
                    perf_probe(perf, &program, &["-V", place]),
                    probe(&program, &["-V", place]).expect(0).stdout,
                );
                assert_eq!(ours, theirs, "{} {name}: -V {place}", perf.display());
            }
        }
    }
}

fn build(folder: &Path, flags: &[&str]) -> PathBuf {
    compiled(folder, "gcc", ("shop.c", SHOP), flags)
}

/// Compiles a source with this name.
fn compiled(folder: &Path, compiler: &str, (file, text): (&str, &str), flags: &[&str]) -> PathBuf {
    let source = folder.join(file);
    let program = source.with_extension("");
    std::fs::write(&source, text).expect("the source is written");
    let built = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(&source).status();
    assert!(built.expect("the compiler starts").success());
    program
}

#[test]
fn values_equal_what_the_program_prints() {
    let Some(group) = ProbeGroup::new("values") else { return };
    if !kit::need_program("gcc") {
        return;
    }
    for (name, flags) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let program = build(folder.path(), flags);
        let define = |definition: &str| {
            let text = format!("{}:{name}_{definition}", group.0);
            probe(&program, &["-q", &text]).expect(0);
        };
        define(
            "a=price item->name:string item->label:string price=item->price item->parts[2].id \
             item->parts[1].level next=item->next->price item->inner count tag=tag:string counter total table[3]",
        );
        define("b=narrow small neg=neg:s16");
        define("c=whole big.c numbers[1]");
        define("d=price%return sum=$retval:s64");
        let data = folder.path().join("perf.data");
        let file = data.to_str().unwrap();
        let events = format!("{}:{name}_*", group.0);
        let path = program.to_str().unwrap();
        let ran = kit::run(&["record", "-q", "-o", file, "-e", &events, "--", path, "3"]).expect(0);
        let script = kit::run(&["script", "-i", file]).expect(0).stdout;
        let values_of = |event: &str| -> Vec<&str> {
            let name = format!("{name}_{event}:");
            let lines = script.lines().filter(|line| line.contains(&name));
            lines.filter_map(|line| Some(line.split_once(") ")?.1)).collect()
        };
        let printed: Vec<&str> = ran.stdout.lines().collect();
        // The kernel prints unsigned bit fields as it prints hexadecimal numbers.
        let plain: Vec<String> =
            values_of("a").iter().map(|line| line.replace("level=0x15", "level=21")).collect();
        assert_eq!(plain, printed, "{name}");
        assert_eq!(values_of("b"), ["small=0xfa neg=0", "small=0xfb neg=-1", "small=0xfc neg=-2"], "{name}");
        assert_eq!(values_of("c"), ["c=3 numbers=-42"; 3], "{name}");
        let sums: Vec<String> =
            ran.stderr.lines().filter_map(|line| Some(format!("sum={}", line.split_once(' ')?.0))).collect();
        assert_eq!(values_of("d"), sums, "{name}");
        let filtered = [
            "record",
            "-q",
            "-o",
            file,
            "-e",
            &format!("{}:{name}_a", group.0),
            "--filter",
            "count > 1",
            "--",
            path,
            "3",
        ];
        kit::run(&filtered).expect(0);
        let script = kit::run(&["script", "-i", file]).expect(0).stdout;
        assert_eq!(script.matches(" count=").count(), 2, "{script}");
    }
}

/// Functions with equal last names, values with equal last names, returned strings, and floating-point numbers.
const NAMES: &str = r#"
#include <cstdio>
struct item { const char *name; double weight; int id; };
namespace n {
namespace m { struct S { int v; __attribute__((noinline)) int get(int k) { asm volatile(""); return v + k; } }; }
namespace k { struct S { int v; __attribute__((noinline)) int get(int k) { asm volatile(""); return v * k; } }; }
}
__attribute__((noinline)) const char *label(item *a, item *b)
{
    asm volatile("" ::: "memory");
    return a->id > b->id ? a->name : b->name;
}
int main()
{
    item a{"apple", 1.5, 1}, b{"pear", 2.5, 2};
    n::m::S s{1};
    n::k::S t{2};
    puts(label(&a, &b));
    return s.get(1) + t.get(1) == 0;
}
"#;

fn build_names(folder: &Path, optimization: &str) -> Option<PathBuf> {
    if !kit::need_program("g++") {
        return None;
    }
    Some(compiled(folder, "g++", ("names.cc", NAMES), &[optimization, "-g"]))
}

#[test]
fn functions_and_values_with_equal_last_names_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build_names(folder.path(), "-O1") else { return };
    let print = |definition: &str| probe(&program, &["-D", definition]);
    let whole = print("e=n::m::S::get").expect(0).stdout;
    assert_eq!(print("e=m::S::get").expect(0).stdout, whole);
    assert_ne!(print("e=k::S::get").expect(0).stdout, whole);
    print("S::get").expect(1).says(&["several functions", "try: n::k::S::get", "try: n::m::S::get"]);
    print("x::S::get").expect(1).says(&["no function `x::S::get`"]);
    probe(&program, &["-V", "m::S::get"]).expect(0).prints(&["int\tk"]);
    let values = print("label a->id b->id id_1=a->weight:x64 $retval:string").expect(0).stdout;
    assert!(
        values.ends_with("id=+16(%di):s32 id_2=+16(%si):s32 id_1=+8(%di):x64 +0($retval):string\n"),
        "{values}"
    );
    print("label a->weight").expect(1).says(&["floating-point number", "add :x64"]);
}

#[test]
fn returned_strings_are_read_and_groups_of_modifier_letters_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let Some(group) = ProbeGroup::new("texts") else { return };
    let Some(program) = build_names(folder.path(), "-O0") else { return };
    let letters = ProbeGroup("kh".to_owned());
    let (text, plain) =
        (format!("{}:text=label%return $retval:string", group.0), "kh:g=label a->name:string b->name:string");
    probe(&program, &["-q", "-a", &text, "-a", plain]).expect(0);
    let (data, path) = (folder.path().join("perf.data"), program.to_str().unwrap());
    let (file, event) = (data.to_str().unwrap(), format!("{}:text", group.0));
    kit::run(&["record", "-q", "-o", file, "-e", &event, "-e", "kh:g:u", "--", path]).expect(0);
    kit::run(&["script", "-i", file]).expect(0).prints(&[
        "arg1=\"pear\"",
        "kh:g: (",
        "name=\"apple\" name_1=\"pear\"",
    ]);
    drop(letters);
    kit::run(&["stat", "-e", "kh:g", "--", path]).expect(2).says(&["no tracepoints named `kh:"]);
}

#[test]
fn perf_lists_the_same_probes() {
    let Some(group) = ProbeGroup::new("listed") else { return };
    let Some(lab) = Lab::new() else { return };
    let program = build(&lab.path(""), &["-O2", "-g"]);
    let define = |definition: &str| probe(&program, &["-q", &format!("{}:{definition}", group.0)]).expect(0);
    define("a=price count");
    define("b=narrow %di");
    define("c=price%return r=$retval");
    define("d=price:5");
    let ours = group.listed();
    assert_eq!(ours.lines().count(), 4, "{ours}");
    for perf in oracle::perfs().iter().filter(|perf| need_dwarf_in(perf)) {
        let theirs = oracle::says(perf, &["probe", "-l", &format!("{}:*", group.0)]);
        let sorted = |text: &str| {
            let mut lines: Vec<String> =
                text.lines().filter(|line| line.contains(&group.0)).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&ours), sorted(&theirs), "{}", perf.display());
    }
}

#[test]
fn all_definitions_of_a_command_are_added_or_none() {
    let Some(group) = ProbeGroup::new("whole") else { return };
    if !kit::need_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &["-O0", "-g"]);
    let named = |definition: &str| format!("{}:{definition}", group.0);
    let (good, missing, bad) = (named("a=price count"), named("b=price cont"), named("b=narrow %nonsense"));
    probe(&program, &["-a", &good, "-a", &missing]).expect(1).says(&["no variable `cont`", "try: count"]);
    probe(&program, &["-a", &good, "-a", &bad]).expect(1).says(&["the kernel refuses", "were removed"]);
    assert_eq!(group.listed(), "");
    probe(&program, &["-n", &good]).expect(0).says(&["Added new event:"]);
    assert_eq!(group.listed(), "");
    probe(&program, &[&good]).expect(0).says(&["(on price in", "with count)", "pmc record -e"]);
    probe(&program, &[&good]).expect(1).says(&["exists", "-f adds another one"]);
    probe(&program, &["-f", &good]).expect(0).says(&["a_1"]);
    let gone = kit::run(&["probe", "-d", &named("a*")]).expect(0);
    gone.says(&[&format!("Removed event: {}", named("a")), &format!("Removed event: {}", named("a_1"))]);
    kit::run(&["probe", "-d", &named("a*")]).expect(1).says(&["no probe matches"]);
}

#[test]
fn static_memory_bit_fields_and_inlined_functions_are_read_where_perf_fails() {
    if !kit::need_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &["-O2", "-gdwarf-5"]);
    let print = |definition: &str| probe(&program, &["-D", definition]);
    let statics = print("price counter total table[3]").expect(0).stdout;
    assert!(statics.contains(" counter=@+0x") && statics.contains(":s64 table=@+0x"), "{statics}");
    print("price item->parts[1].level").expect(0).prints(&[":b5@11/32"]);
    // A copy in `price` has `v`; perf writes an invalid constant for the one in `main`.
    let inlined = print("twice v").expect(0).says(&["0xdeade12d"]).stdout;
    assert_eq!(inlined.lines().count(), 2, "{inlined}");
    assert!(inlined.contains("v=\\0xdeade12d:s32") && inlined.contains("v=%si:s32"), "{inlined}");
    print("twice%return").expect(1).says(&["inlined at 2 places"]);
    print("twice:2").expect(1);
}

#[test]
fn unreadable_places_and_variables_are_explained() {
    if !kit::need_program("gcc") || !kit::need_program("strip") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &["-O2", "-g"]);
    let print = |definition: &str| probe(&program, &["-D", definition]);
    print("prise").expect(1).says(&["no function `prise`", "try: price"]);
    print("printf").expect(1).says(&["it is in a library"]);
    print("price:400").expect(1).says(&["no code belongs to price:400"]);
    print("price+4000").expect(1).says(&["`price` has only 0x"]);
    print("shap.c:3").expect(1).says(&["no source file", "try: shop.c"]);
    print("price item.name").expect(1).says(&["write ->name"]);
    print("price item->nome").expect(1).says(&["its members are name, label"]);
    print("whole big").expect(1).says(&["name one of its members a, b, c"]);
    print("price count:string").expect(1).says(&["only char pointers"]);
    print("price name=item->name name=count").expect(2).says(&["two arguments are named name"]);
    print("price%return count").expect(2).says(&["no longer exist"]);
    // The compiler keeps `i` as another variable plus 1, which a debugger calculates and a probe cannot.
    print("price:5 i").expect(1).says(&["the program does not store the value"]);
    let strip = |option: &str, name: &str| {
        let stripped = folder.path().join(name);
        let done = Command::new("strip").args([option, "-o"]).arg(&stripped).arg(&program).status();
        assert!(done.unwrap().success());
        stripped
    };
    let (bare, symbols) = (strip("-s", "bare"), strip("-g", "symbols"));
    probe(&bare, &["-D", "price"]).expect(1).says(&["the file is stripped", "build-id"]);
    probe(&symbols, &["-D", "price"]).expect(0).prints(&["p:probe_symbols/price "]);
    probe(&symbols, &["-D", "price count"]).expect(1).says(&["no debug information"]);
    probe(&symbols, &["-L", "price"]).expect(1).says(&["no debug information"]);
    let names = probe(&symbols, &["-F", "pri* | nar*"]).expect(0).stdout;
    assert_eq!(names, "narrow\nprice\n");
    kit::run(&["probe", "-D", "vfs_read:3"]).expect(1).says(&["the kernel's debug information"]);
    kit::run(&["probe"]).expect(2).says(&["no probe is given"]);
}

#[test]
fn damaged_debug_information_causes_errors_only() {
    if !kit::need_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &["-O2", "-g"]);
    let whole = std::fs::read(&program).unwrap();
    // The debug sections follow the program's own bytes.
    let first = whole.windows(5).position(|bytes| bytes == b"GCC: ").unwrap_or(whole.len() / 2);
    let mut dice = 88_172_645_463_325_252_u64;
    for _ in 0..60 {
        let mut damaged = whole.clone();
        for _ in 0..20 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let at = first + dice as usize % (whole.len() - first);
            damaged[at] = (dice >> 32) as u8;
        }
        std::fs::write(&program, damaged).unwrap();
        for options in [["-D", "price $vars"], ["-V", "twice"], ["-L", "price"]] {
            let ran = probe(&program, &options);
            assert!(matches!(ran.status, Some(0 | 1)), "{options:?}: {ran:?}");
        }
    }
}

#[test]
fn implausibly_large_unwind_tables_are_ignored() {
    if !kit::need_program("gcc") || !kit::need_program("objcopy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // With these flags, the stack frame is described only in `.debug_frame`.
    let whole = build(folder.path(), &["-O0", "-gdwarf-4", "-fno-asynchronous-unwind-tables"]);
    let objcopy = |options: &[&str], from: &Path, to: &Path| {
        let done = Command::new("objcopy").args(options).arg(from).arg(to).status();
        assert!(done.expect("objcopy starts").success(), "{options:?}");
    };
    let place = |program: &Path| probe(program, &["-D", "price count"]);
    place(&whole).expect(0).prints(&["(%bp):s32"]);
    // The debug file has everything except for the unwind tables. The program has only these.
    let (debug, program) = (folder.path().join("debug"), folder.path().join("program"));
    objcopy(&["--only-keep-debug", "--remove-section=.debug_frame"], &whole, &debug);
    let removed = ["info", "abbrev", "line", "line_str", "str", "aranges", "loc", "ranges"];
    let mut options = Vec::from(removed.map(|name| format!("--remove-section=.debug_{name}")));
    options.push(format!("--add-gnu-debuglink={}", debug.display()));
    objcopy(&options.iter().map(String::as_str).collect::<Vec<_>>(), &whole, &program);
    place(&program).expect(0).prints(&["(%bp):s32"]);
    // Zeros after the tables, which compress to a thousandth of their size.
    let tables = folder.path().join("tables");
    objcopy(&["--dump-section", &format!(".debug_frame={}", tables.display())], &program, &program);
    let mut bytes = std::fs::read(&tables).unwrap();
    bytes.resize(bytes.len() + (16 << 20), 0);
    std::fs::write(&tables, bytes).unwrap();
    let update = format!(".debug_frame={}", tables.display());
    objcopy(&["--update-section", &update, "--compress-debug-sections=zlib"], &program, &program);
    place(&program).expect(1).says(&["the debug information does not describe here"]);
}

#[test]
fn kernel_functions_are_named_as_in_kallsyms() {
    if !kit::need_root()
        || !kit::need("kallsyms", Path::new("/proc/kallsyms").exists(), "there is no symbol list")
    {
        return;
    }
    let print = |definition: &str| kit::run(&["probe", "-D", definition]);
    assert_eq!(print("vfs_read").expect(0).stdout, "p:probe/vfs_read vfs_read+0\n");
    assert_eq!(print("r=vfs_read%return n=$retval").expect(0).stdout, "r:probe/r vfs_read+0 n=$retval\n");
    print("vfs_raed").expect(1).says(&["the kernel has no function", "vfs_read"]);
}

#[test]
fn users_without_rights_learn_what_is_missing() {
    // A user cannot see the tracefs inside of debugfs.
    let is_mounted = Path::new("/sys/kernel/tracing/events").exists();
    if !kit::need("tracefs", is_mounted, "tracefs is not mounted in /sys/kernel/tracing") {
        return;
    }
    let Some(ran) = kit::as_nobody(&["probe", "-l"]) else { return };
    ran.expect(1).says(&["no permission", "try: run as root"]);
}
