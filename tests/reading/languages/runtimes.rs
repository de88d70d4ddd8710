//! Functions that language runtimes name: how `pmc profile` shows them, and its advice when names are
//! missing.

use super::*;

/// Text output of `pmc profile` for a command.
#[track_caller]
fn profile(lab: &Lab, command: &[&str]) -> String {
    let words = ["profile", "--stdio", "-v", "-e", "cpu-clock", "-F", "2000", "--"];
    let ran = kit::pmc()
        .args(words)
        .args(command)
        .current_dir(lab.path(""))
        .env_remove("PYTHONPERFSUPPORT")
        .env_remove("RUBYOPT")
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

const TITLE: &str = "Functions as named by their language runtime";

/// Self and total percentage of the table's first function whose name contains `name`.
#[track_caller]
fn shares(text: &str, name: &str) -> (f64, f64) {
    let table = table(text);
    let row =
        table.iter().find(|row| row.contains(name)).unwrap_or_else(|| panic!("no {name} in {table:#?}"));
    numbers(row)
}

/// The rows of the table.
#[track_caller]
fn table(text: &str) -> Vec<&str> {
    let (_, table) = text.split_once(TITLE).unwrap_or_else(|| panic!("no table in {text}"));
    // The title is followed by a line of headings. After the rows comes a line about omitted rows.
    let rows = table.split("\n\n").next().unwrap().lines().skip(2);
    rows.filter(|row| row.contains('%')).collect()
}

/// Self and total percentage of a row.
fn numbers(row: &str) -> (f64, f64) {
    let mut numbers = row.split('%').map(|part| part.rsplit(' ').next().unwrap().parse());
    let [own, total] = [numbers.next(), numbers.next()].map(|number| number.unwrap().unwrap());
    (own, total)
}

#[test]
fn runtime_functions_are_listed_with_their_native_time() {
    if !ready(&["gcc"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("trampoline.c"));
    let program = lab.text("prog");
    lab.run("gcc", &["-O1", "-g", "-fno-omit-frame-pointer", source.to_str().unwrap(), "-o", &program]);
    let text = profile(&lab, &[&program]);
    let (own, total) = shares(&text, "py::serve:/srv/shop.py");
    assert!(own > 80.0 && total >= own, "{text}");
    let (own, total) = shares(&text, "py::day:/srv/shop.py");
    assert!(own < 20.0 && total > 80.0, "{text}");
    // The table of all functions also shows the C function, whose name is unique.
    assert!(text.lines().any(|line| line.ends_with(" evaluate_serve")), "{text}");

    let file = lab.text("perf.data");
    let report = |options: &[&str]| {
        let words = [&["report", "--no-cache", "-i", &file], options].concat();
        kit::run(&words).expect(0).stdout
    };
    let for_people = report(&["--stdio", "--stdio-color", "always"]);
    assert!(for_people.contains(TITLE), "{for_people}");
    for for_programs in [&[][..], &["--stdio"], &["--csv"], &["--json"], &["-t;"]] {
        assert!(!report(for_programs).contains(TITLE), "{for_programs:?}");
    }
    assert!(!report(&["-q", "--stdio", "--stdio-color", "always"]).contains(TITLE));
}

#[test]
fn python_functions_include_interpreter_time() {
    let python = generated_code::python();
    if !kit::need("python-3.12", python.is_some(), "no Python 3.12 or later is installed") || !ready(&[]) {
        return;
    }
    let (lab, python) = (Lab::new(), python.unwrap());
    let text = profile(&lab, &[python.to_str().unwrap(), source("shop.py").to_str().unwrap()]);
    let (own, _) = shares(&text, "py::serve:");
    let (_, total) = shares(&text, "py::day:");
    assert!(own > 50.0 && total > 50.0, "{text}");
    assert!(!text.contains("Python functions have no names"), "{text}");
}

/// A Python that cannot name its functions, like Debian 12's.
fn old_python() -> Option<PathBuf> {
    let is_old = |python: &PathBuf| {
        let asks = "import sys; sys.exit(sys.version_info >= (3, 12))";
        Command::new(python).args(["-c", asks]).output().is_ok_and(|output| output.status.success())
    };
    ["python3.11", "python3"].into_iter().filter_map(kit::on_path).find(is_old)
}

#[test]
fn old_python_is_reported_with_a_remedy() {
    let python = old_python();
    if !kit::need("python-3.11", python.is_some(), "no Python before 3.12 is installed") || !ready(&[]) {
        return;
    }
    let (lab, python) = (Lab::new(), python.unwrap());
    let text = profile(&lab, &[python.to_str().unwrap(), source("shop.py").to_str().unwrap()]);
    for part in [
        "Python functions will have no names: this Python is older than 3.12",
        "Python functions have no names: ",
        "try: Python 3.12 or newer, with -X perf or PYTHONPERFSUPPORT=1",
    ] {
        // Lines are wrapped.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains(TITLE), "{text}");
}

#[test]
fn unnamed_perl_functions_are_reported() {
    if !ready(&["perl"]) {
        return;
    }
    let lab = Lab::new();
    let text = profile(&lab, &["perl", source("shop.pl").to_str().unwrap()]);
    for part in ["Perl functions will have no names: ", "Perl functions have no names: ", "perl -d:NYTProf"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn unnamed_interpreters_have_a_remedy() {
    if !ready(&["gcc"]) {
        return;
    }
    let lab = Lab::new();
    let source = source("interpreter.c");
    for (program, evaluator, language, remedy) in [
        ("python3.11", "_PyEval_EvalFrameDefault", "Python", "Python 3.12 or newer, with -X perf"),
        ("python3.13", "_PyEval_EvalFrameDefault", "Python", "python -X perf, or PYTHONPERFSUPPORT=1"),
        ("php8.2", "execute_ex", "PHP", "-d opcache.jit_debug=16"),
        ("ruby3.3", "ruby_run_node", "Ruby", "ruby --yjit --yjit-perf"),
        ("perl5.36", "Perl_runops_standard", "Perl", "perl -d:NYTProf"),
    ] {
        let define = format!("-DEVALUATOR={evaluator}");
        lab.run("gcc", &["-O1", "-g", &define, source.to_str().unwrap(), "-o", program]);
        let text = profile(&lab, &[&lab.text(program)]);
        let remark = format!("{language} functions have no names: ");
        let said = text.split_once(&remark).unwrap_or_else(|| panic!("{program}: {text}")).1;
        let remedies = said.split_once("try: ").unwrap().1;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(remedies).contains(remedy), "{program}: {text}");
    }
}

#[test]
fn node_functions_include_their_callees() {
    if !ready(&["node"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.js"));
    let text = profile(&lab, &["node", "--no-turbo-inlining", source.to_str().unwrap()]);
    let (own, _) = shares(&text, "serve ");
    assert!(own > 50.0, "{text}");
    // The callers that remain depend on the compiler's inlining.
    let is_caller = |row: &&str| matches!(numbers(row), (own, total) if own < 5.0 && total > 50.0);
    assert!(table(&text).iter().any(is_caller), "{text}");
    assert!(!text.contains("Builtin:"), "{text}");
}

#[test]
fn erlang_stacks_reach_their_process_or_explain_why_not() {
    if !ready(&["erl", "erlc"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.erl"));
    lab.run("erlc", &[source.to_str().unwrap()]);
    let text = profile(&lab, &["erl", "-noshell", "-s", "shop", "main"]);
    let (own, total) = shares(&text, "shop:serve/2");
    assert!(own > 20.0 && total >= own, "{text}");
    assert!(!text.contains("global::") && !text.contains("-fno-omit-frame-pointer"), "{text}");
    // On a busy machine, stacks are unwound later, after the process and its generated code are gone.
    if text.contains("saved with a copy of the stack") {
        return;
    }
    assert!(shares(&text, "shop:main/0").1 > 20.0, "{text}");
    assert!(text.contains("end where Erlang calls C code: "), "{text}");
    // The entry point of an Erlang process counts as a root.
    let (before, _) = text.split_once("% of stacks complete").unwrap();
    let rooted: f64 = before.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(rooted > 20.0, "{text}");
}

#[test]
fn php_functions_are_named_with_jit_debug_option() {
    if !ready(&["php"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.php"));
    let script = source.to_str().unwrap();
    let text = profile(&lab, &["php", "-d", "opcache.enable_cli=0", script]);
    assert!(text.contains("PHP functions have no names: "), "{text}");
    // The suggested options fix it.
    let (_, advice) = text.split_once("PHP functions will have no names: ").unwrap();
    let (_, advice) = advice.split_once('(').unwrap();
    let advice = advice.split(')').next().unwrap().split_whitespace();
    let command: Vec<&str> = advice.chain([script]).collect();
    let text = profile(&lab, &command);
    let (own, _) = shares(&text, "JIT$serve");
    assert!(own > 20.0, "{text}");
    assert!(!text.contains("PHP functions"), "{text}");
    assert!(!text.contains("code with -fno-omit-frame-pointer"), "{text}");
}
