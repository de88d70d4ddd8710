//! Programs whose file is not directly readable: stripped, deleted, or in another mount namespace.

use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::kit::burn::waiting_shell;

const STACK: &[Wanted] = &[
    inlined("shop::Till<long>::ring", "ring"),
    at("shop::serve", "serve"),
    at("day", "day"),
    at("main", "main"),
];

/// Builds the program with frame pointers and debug information.
#[track_caller]
fn build(lab: &Lab) -> (PathBuf, String) {
    let (source, program) = (source("shop.cpp"), lab.text("prog"));
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", &program];
    lab.run("g++", &[&flags, &[source.to_str().unwrap()][..]].concat());
    (source, program)
}

/// Starts a command and waits until its process executes the program with this name.
#[track_caller]
fn start(command: &[&str], name: &str) -> kit::ProcessGuard {
    let running = kit::ProcessGuard::start(Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()));
    let exe = format!("/proc/{}/exe", running.id());
    kit::wait_for(&format!("{command:?} becomes {name}"), || {
        std::fs::read_link(&exe).is_ok_and(|exe| exe.file_name().is_some_and(|file| file == name))
    });
    running
}

#[test]
fn stripped_programs_are_reported_and_debug_files_help() {
    if !ready(&["g++", "objcopy", "strip", "xz", "nm"]) {
        return;
    }
    let lab = Lab::new();
    let (source, program) = build(&lab);
    std::fs::copy(&program, lab.path("whole")).unwrap();
    lab.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    lab.run("strip", &["prog"]);
    let file = lab.record(FP, &[&program]);

    // Only the symbols for dynamic linking remain. The report says so and suggests a remedy.
    let document = report(&file);
    let bare = module(&document, "prog");
    let build_id = bare["build_id"].as_str().unwrap();
    assert!(bare["unnamed"].as_u64() >= Some(*LEAST as u64), "{bare}");
    assert!(bare["missing"][0].as_str().unwrap().ends_with("prog is stripped"), "{bare}");
    let remedy = bare["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("-g") && remedy.contains(build_id) && remedy.contains("--debuginfod"),
        "{remedy}"
    );
    let text = kit::run(&["report", "--stdio", "--no-cache", "-i", file.to_str().unwrap()]).expect(0);
    text.prints(&["Trust:", "prog is stripped", "try: build it with -g"]);

    // The report still separates the functions by their start address. `script` names only functions that
    // perf names.
    let nm = kit::oracle::says("nm", &["-S", "--defined-only", &lab.text("whole")]);
    let serve = nm.lines().find(|line| line.contains("serve") && line.contains(" T ")).unwrap();
    let serve = format!("prog+{:#x}", u64::from_str_radix(&serve[..16], 16).unwrap());
    let rows = document["events"][0]["rows"].as_array().unwrap();
    let of_prog = rows.iter().filter(|row| row["dso"] == "prog");
    let names: Vec<&str> = of_prog.map(|row| row["sym"].as_str().unwrap()).collect();
    assert!(names.contains(&serve.as_str()), "{serve}: {names:?}");
    let is_placeholder =
        |name: &&str| name.starts_with("prog+0x") || name.ends_with("@plt") || name.starts_with("[prog .");
    assert!(names.iter().all(is_placeholder), "{names:?}");
    let path = file.to_str().unwrap();
    kit::run(&["annotate", "--stdio", "-i", path, &serve]).expect(0).prints(&[&serve, "ret"]);
    let script = kit::run(&["script", "-i", path]).expect(0).stdout;
    assert!(script.contains("[unknown] (") && !script.contains("prog+0x"));

    // The separate debug file next to the program, found by its link.
    lab.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    expect_stack(&file, &source, STACK);
    expect_row(&file, &source, "prog", "shop::serve", "ring");
    std::fs::remove_file(lab.path("prog.debug")).unwrap();

    // The symbol table that Fedora embeds in its programs: names, and a note about missing lines.
    let text = kit::oracle::says("nm", &["--defined-only", "--format=posix", &lab.text("whole")]);
    let functions = text.lines().filter(|line| line.contains(" t ") || line.contains(" T "));
    let names: Vec<&str> = functions.filter_map(|line| line.split(' ').next()).collect();
    std::fs::write(lab.path("names"), names.join("\n")).unwrap();
    lab.run("objcopy", &["-S", "--keep-symbols=names", "whole", "mini"]);
    lab.run("xz", &["mini"]);
    lab.run("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "prog"]);
    expect_stack(&file, &source, &[named("shop::serve"), named("day"), named("main")]);
    let document = report(&file);
    let mini = module(&document, "prog");
    assert_eq!((&mini["unnamed"], &mini["lines"]), (&Value::from(0), &Value::from(false)), "{mini}");
    assert!(mini["missing"][0].as_str().unwrap().ends_with("prog has no line information"), "{mini}");
}

const FP: &[&str] = &["--call-graph", "fp"];

#[test]
fn deleted_files_are_read_through_their_process() {
    if !ready(&["g++"]) || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let source = source("shop.cpp");
    let (library, program) = (lab.text("libshop.so"), lab.text("prog"));
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer"];
    let path = source.to_str().unwrap();
    lab.run("g++", &[&flags, &["-shared", "-fPIC", "-Dmain=open_shop", path, "-o", &library][..]].concat());
    let stub =
        "int open_shop(int, char **); int main(int c, char **v) { int r = open_shop(c, v); return r + 1; }";
    std::fs::write(lab.path("stub.cpp"), stub).unwrap();
    lab.run("g++", &[&flags, &["stub.cpp", &library, "-o", &program][..]].concat());

    let running = start(&[&program, "100000000"], "prog");
    // By the time the program uses CPU time, its library is mapped.
    kit::wait_for_ticks(running.id(), 5);
    for gone in [&library, &program] {
        std::fs::remove_file(gone).unwrap();
    }
    let pid = running.id().to_string();
    let file = lab.record(&["-g", "-p", &pid], &["sh", "-c", waiting_shell(running.id(), 500)]);
    let stack = [STACK[0], STACK[1], STACK[2], at("open_shop", "main"), named("main")];
    expect_stack(&file, &source, &stack);
    let document = report(&file);
    let trust = &document["trust"];
    assert!(trust["unnamed"].as_u64().unwrap() * 20 < trust["frames"].as_u64().unwrap(), "{trust}");
}

/// Moves the program to where only another mount namespace sees it, then runs `rest` there.
fn in_a_namespace(lab: &Lab, rest: &str) -> Vec<String> {
    let inner = lab.text("inner");
    std::fs::create_dir(&inner).unwrap();
    let script = format!(
        "mount -t tmpfs none {inner} && cp {prog} {inner}/hidden && rm {prog} && {rest}",
        prog = lab.text("prog"),
    );
    ["unshare", "-m", "sh", "-c", &script].map(str::to_owned).into()
}

/// Held by tests that create mount namespaces: the kernel gives the number of a namespace that has ended to the
/// next one.
static NAMESPACES: Mutex<()> = Mutex::new(());

/// Returns a guard if this machine allows mount namespaces.
#[track_caller]
fn can_unshare() -> Option<MutexGuard<'static, ()>> {
    let can = ready(&["g++", "mount"]) && kit::need_mount_namespaces();
    can.then(|| NAMESPACES.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn files_of_a_running_process_in_another_mount_namespace_are_found() {
    let Some(_only) = can_unshare() else { return };
    let lab = Lab::new();
    let (source, _) = build(&lab);
    let command = in_a_namespace(&lab, &format!("exec {}/hidden 100000000", lab.text("inner")));
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let running = start(&words, "hidden");
    assert!(!lab.path("inner/hidden").exists(), "we see it too");
    let pid = running.id().to_string();
    let file = lab.record(&["-g", "-p", &pid], &["sh", "-c", waiting_shell(running.id(), 500)]);
    expect_stack(&file, &source, STACK);
    expect_row(&file, &source, "hidden", "shop::serve", "ring");
}

#[test]
fn files_of_an_exited_process_are_found_through_its_namespace() {
    let Some(_only) = can_unshare() else { return };
    let lab = Lab::new();
    let (source, _) = build(&lab);
    let pid_file = lab.text("pid");
    let rest = format!(
        "{{ sleep 600 >{pid_file}.out 2>&1 & echo $! >{pid_file}; {}/hidden; exit 0; }}",
        lab.text("inner")
    );
    let command = in_a_namespace(&lab, &rest);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let file = lab.record(&["-g", "--namespaces"], &words);
    let sleeper: u32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    // A failed assertion must not leave the process behind.
    let seen = std::panic::catch_unwind(|| expect_stack(&file, &source, STACK));
    let killed = Command::new("kill").arg(sleeper.to_string()).status().unwrap();
    assert!(killed.success());
    seen.unwrap();
    // The namespace ends with its last process, and the report says so.
    kit::wait_for("its end", || !Path::new(&format!("/proc/{sleeper}/ns/mnt")).exists());
    let document = report(&file);
    let lost = module(&document, "hidden");
    assert!(lost["missing"][0].as_str().unwrap().contains("another mount namespace"), "{lost}");
}

/// Reports and archives state paths as the process saw them. `/proc/PID/root` means nothing later, and nothing
/// on another machine.
#[test]
fn paths_in_another_mount_namespace_are_those_of_its_processes() {
    if !ready(&["objcopy", "strip"]) {
        return;
    }
    let Some(_only) = can_unshare() else { return };
    let lab = Lab::new();
    build(&lab);
    lab.run("objcopy", &["--only-keep-debug", "prog", "hidden.debug"]);
    lab.run("strip", &["prog"]);
    lab.run("objcopy", &["--add-gnu-debuglink=hidden.debug", "prog"]);
    let inner = lab.text("inner");
    let rest = format!("mv {} {inner}/ && exec {inner}/hidden 100000000", lab.text("hidden.debug"));
    let command = in_a_namespace(&lab, &rest);
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let running = start(&words, "hidden");
    let pid = running.id().to_string();
    let file = lab.record(&["-g", "-p", &pid], &["sh", "-c", waiting_shell(running.id(), 500)]);
    let archive = lab.text("archive");
    kit::run(&["archive", file.to_str().unwrap(), "-o", &archive]).expect(0);
    for file in [&file, Path::new(&archive)] {
        let document = report(file);
        let hidden = module(&document, "hidden");
        assert_eq!(hidden["binary"], format!("{inner}/hidden"), "{hidden}");
        assert_eq!(hidden["debug"], format!("{inner}/hidden.debug"), "{hidden}");
        let listing = kit::run(&["annotate", "--stdio", "-i", file.to_str().unwrap(), "shop::serve"]);
        assert!(!listing.expect(0).stdout.contains("/root/"));
    }
}
