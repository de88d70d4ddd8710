//! Functions with the same name: each has a row in every view and export, with its parameters where the name
//! is not unique.

use super::*;

/// With an argument, the program calls only one function of each name.
const OVERLOADS: &str = r"
__attribute__((noinline)) void func(int) { burn_ms(60); }
__attribute__((noinline)) void func(bool) { burn_ms(60); }
struct Shop {
    __attribute__((noinline)) Shop(int) { burn_ms(60); }
    __attribute__((noinline)) Shop(const char *) { burn_ms(60); }
};
template <class T> __attribute__((noinline)) void each(T) { burn_ms(60); }
template <class T> __attribute__((noinline)) void each(T *) { burn_ms(60); }
__attribute__((noinline)) void unique(int) { burn_ms(60); }
int main(int argc, char **) {
    func(argc);
    Shop first(argc);
    each<int>(argc);
    unique(argc);
    if (argc > 1) return 0;
    func(true);
    Shop second(nullptr);
    each<int>(&argc);
}
";

const NAMES: [&str; 7] = [
    "func(int)",
    "func(bool)",
    "Shop::Shop(int)",
    "Shop::Shop(char const*)",
    "each<int>(int)",
    "each<int>(int*)",
    "unique",
];

#[test]
fn overloads_have_rows_in_all_outputs() {
    if !ready(&["g++"]) {
        return;
    }
    let lab = Lab::new();
    let (source, program) = (lab.text("overloads.cpp"), lab.text("overloads"));
    std::fs::write(&source, OVERLOADS).unwrap();
    lab.run("g++", &["-O1", "-g", "-fno-omit-frame-pointer", &source, "-o", &program]);
    let one = lab.text("one.data");
    std::fs::rename(lab.record(&["-g"], &[&program, "one"]), &one).unwrap();
    let both = lab.text("both.data");
    std::fs::rename(lab.record(&["-g"], &[&program]), &both).unwrap();
    let pmc = |words: &str| {
        let ran: kit::Ran = kit::pmc().args(words.split_whitespace()).output().unwrap().into();
        ran.expect(0).stdout
    };
    // Returns the names that are missing in an output, where other names and spaces end a name.
    let missing = |output: &str| {
        let is_end = |c: char| [' ', '\n', ';', '"', '<', '@', '+', '\t'].contains(&c);
        let is_there = |name: &&&str| {
            let behind = output.match_indices(**name).map(|(at, _)| &output[at + name.len()..]);
            let ends = behind.filter(|rest| rest.is_empty() || rest.starts_with(is_end));
            ends.count() > 0
        };
        NAMES.iter().filter(|name| !is_there(name)).copied().collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(missing(&pmc(&format!("report -i {both} --stdio -s sym"))), none);
    assert_eq!(missing(&pmc(&format!("report -i {both} --json -s sym"))), none);
    assert_eq!(missing(&pmc(&format!("script -i {both} -F ip,sym"))), none);
    assert_eq!(missing(&pmc(&format!("export -i {both} --format folded -o -"))), none);
    let (picture, profile) = (lab.text("flames.svg"), lab.text("profile.pb.gz"));
    pmc(&format!("flamegraph -i {both} -o {picture}"));
    let flames = std::fs::read_to_string(&picture).unwrap().replace("&lt;", "<").replace("&gt;", ">");
    assert_eq!(missing(&flames), none);
    if kit::need_program("chromium")
        && let Some(folder) = kit::lab::Lab::new()
    {
        let page = crate::export::export(&folder, Path::new(&both), "page.html", &[]);
        let script = "show('functions');
            const results = [...document.querySelectorAll('#functions td.name')].map((cell) => cell.title || cell.textContent);";
        let names = crate::export::in_browser(&folder, &page, script, &[]);
        let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(missing(&names.join("\n")), none, "{names:?}");
    }
    pmc(&format!("export -i {both} --format pprof -o {profile}"));
    assert_eq!(missing(&pmc(&format!("report -i {profile} --stdio -s sym"))), none);

    // Names are short where they are unique, and selections accept both forms.
    let short = pmc(&format!("report -i {one} --stdio -s sym -g none"));
    for name in ["] func\n", "] Shop::Shop\n", "] each<int>\n", "] unique\n"] {
        assert!(short.contains(name), "{name:?} {short}");
    }
    let rows = |words: &str| pmc(words).lines().filter(|line| line.contains("[.] func")).count();
    assert_eq!(rows(&format!("report -i {both} --stdio -g none -s sym -S func")), 2);
    assert_eq!(rows(&format!("report -i {both} --stdio -g none -s sym -S func(int)")), 1);
    let code = pmc(&format!("annotate -i {both} func(bool) --stdio"));
    assert!(code.contains("<func(bool)>") && !code.contains("<func(int)>"), "{code}");

    // If one of two recordings has both functions, both recordings spell them out.
    for files in [format!("{one} {both}"), format!("{both} {one}")] {
        let compared = pmc(&format!("diff {files} -s sym --limit 0"));
        assert_eq!(missing(&compared), none, "{compared}");
        let func: Vec<&str> = compared.lines().filter(|line| line.contains("] func")).collect();
        let verdict = if files.starts_with(&one) { " new " } else { " gone " };
        let is_new = func.iter().filter(|line| line.contains(verdict)).count();
        assert_eq!((func.len(), is_new), (2, 1), "{compared}");
    }
}
