//! Runs a target without libFuzzer: over files and folders, and over seeded mutations of them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::mutation::{Mutator, Random};
use crate::recordings::{LINE, LINES};

/// Maximum processor time for one input. Elapsed time would depend on how busy the machine is.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum elapsed time for one input, which detects an input that waits forever and uses no processor time.
const PATIENCE: Duration = Duration::from_secs(600);
/// Maximum size of a mutated input in bytes.
const MAX_SIZE: usize = 1 << 20;

const USAGE: &str = "\
usage: NAME [--mutate SEED COUNT] [FILE|FOLDER]...

Runs each file, by default the target's seeds. With --mutate, also runs COUNT mutations of them, which are
the same for the same SEED. Writes an input that panics or hangs to the file crash-NAME, and fails.";

/// The input that runs now and its number, which increases.
static CURRENT: Mutex<(u64, Vec<u8>)> = Mutex::new((0, Vec::new()));

/// Runs the target `name` as the command line says.
pub fn main(name: &'static str, body: fn(&[u8]), mutator: Mutator) -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (mut mutations, mut paths) = (None, Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--mutate" => {
                let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
                let (Some(seed), Some(count)) = (number(), number()) else {
                    eprintln!("{USAGE}");
                    return ExitCode::from(2);
                };
                mutations = Some((seed, count));
            }
            "-h" | "--help" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            _ => paths.push(PathBuf::from(word)),
        }
    }
    if paths.is_empty() {
        paths.push(seeds(name));
    }
    let mut inputs = Vec::new();
    for path in &paths {
        if let Err(error) = collect(path, &mut inputs) {
            eprintln!("{name}: cannot read {path:?}: {error}");
            return ExitCode::FAILURE;
        }
    }
    if inputs.is_empty() {
        eprintln!("{name}: no inputs in {paths:?}");
        return ExitCode::FAILURE;
    }
    watch(name);
    // A seed runs through all command lines of the target, a mutation through one.
    for input in &inputs {
        let mut line = 0;
        while line == 0 || line < LINES.load(Ordering::Relaxed) {
            LINE.store(line, Ordering::Relaxed);
            run(body, input);
            line += 1;
        }
    }
    LINE.store(usize::MAX, Ordering::Relaxed);
    let (seed, count) = mutations.unwrap_or_default();
    let mut random = Random::new(seed);
    for _ in 0..count {
        let mut input = inputs[random.below(inputs.len())].clone();
        mutator(&mut input, MAX_SIZE, &mut random);
        run(body, &input);
    }
    println!("{name}: {} files, {count} mutations", inputs.len());
    ExitCode::SUCCESS
}

/// Returns the folder with a target's seeds: `corpus/NAME`, or the folder that several targets share, whose name
/// is the first word of theirs (`corpus/recording`).
fn seeds(name: &str) -> PathBuf {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"));
    let own = corpus.join(name);
    match name.split_once('_') {
        Some((shared, _)) if !own.is_dir() => corpus.join(shared),
        _ => own,
    }
}

/// Adds the file, or all files below the folder, in the order of their names.
fn collect(path: &Path, inputs: &mut Vec<Vec<u8>>) -> std::io::Result<()> {
    if !path.is_dir() {
        inputs.push(std::fs::read(path)?);
        return Ok(());
    }
    let mut below =
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    below.sort();
    below.iter().try_for_each(|path| collect(path, inputs))
}

fn run(body: fn(&[u8]), input: &[u8]) {
    {
        let mut current = CURRENT.lock().expect("no thread panics while holding the lock");
        current.0 += 1;
        current.1.clear();
        current.1.extend(input);
    }
    body(input);
}

/// Keeps the input of a panic or a hang, and ends the process.
fn watch(name: &'static str) {
    let fail = move |what: &str| {
        crate::in_process::restore();
        let file = format!("crash-{name}");
        let written = CURRENT.lock().map(|current| std::fs::write(&file, &current.1).is_ok());
        eprintln!("{name}: {what}; the input is in {file} (written: {})", matches!(written, Ok(true)));
        std::process::exit(1);
    };
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        fail("panic");
    }));
    let number = || CURRENT.lock().map_or(0, |current| current.0);
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    std::thread::spawn(move || {
        let mut begun = (number(), used(), Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = number();
            if now != begun.0 {
                begun = (now, used(), Instant::now());
            } else if used() > begun.1 + TIMEOUT || begun.2.elapsed() > PATIENCE {
                fail("not finished after 10 s of processor time, or 10 minutes");
            }
        }
    });
}

/// Prepares libFuzzer's process: a closed pipe is an error, not the end, as in programs with Rust's `main`.
#[cfg(fuzzing)]
pub fn init() {
    pmc_sys::sys::signal::ignore(&[rustix::process::Signal::PIPE.as_raw()]);
}

/// Adapter for libFuzzer's custom mutator. Every fourth time, libFuzzer's own mutator runs, which knows the
/// dictionary and the values that the target compares with.
#[cfg(fuzzing)]
pub fn mutate_for_libfuzzer(data: &mut [u8], size: usize, max: usize, seed: u32, mutator: Mutator) -> usize {
    let mut random = Random::new(u64::from(seed));
    if random.below(4) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max);
    }
    let mut input = data[..size].to_vec();
    mutator(&mut input, max, &mut random);
    let size = input.len().min(max);
    data[..size].copy_from_slice(&input[..size]);
    size
}
