//! The CI examples in `docs/ci`: their scripts run in a git repository in which a change made the program slower.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::burn::{BURN_H, loops};
use crate::kit::{self, lab, lab::Lab};

/// 200 turns of `MICROSECONDS` and of 100 microseconds of CPU time.
const SHOP: &str = r#"
__attribute__((noinline)) void find(long n) { for_cpu_us(MICROSECONDS * n / 100) sink += chain(sink, 2000); }
__attribute__((noinline)) void pay(long n) { for_cpu_us(n) sink += chain(sink, 2000); sink++; }
int main(void) { for (int i = 0; i < 200; i++) { long n = uneven(); find(n); pay(n); } return 0; }
"#;

/// A job of a CI system: a repository with two commits, and the commit of the base.
struct Job {
    repository: PathBuf,
    base: String,
}

impl Job {
    fn new(lab: &Lab, name: &str) -> Self {
        let job = Self { repository: lab.path(&format!("{name}/shop")), base: String::new() };
        std::fs::create_dir_all(&job.repository).unwrap();
        std::fs::write(job.repository.join("Makefile"), "shop: shop.c\n\tgcc -O1 -g -o shop shop.c\n")
            .unwrap();
        job.run("git init -q", &[]).expect(0);
        let commit = |microseconds: u32| {
            let constants =
                format!("#define MICROSECONDS {microseconds}\n#define LOOP_PERCENT {}", loops(100));
            let source = format!("{constants}\n#include \"{BURN_H}\"\n{}{SHOP}", lab::CHAIN);
            std::fs::write(job.repository.join("shop.c"), source).unwrap();
            job.run("git add Makefile shop.c && git commit -qm change && git rev-parse HEAD", &[]).expect(0)
        };
        let base = commit(100).stdout.trim().to_owned();
        commit(600);
        Self { base, ..job }
    }

    /// Runs a script as CI systems do: in the repository, until a command fails.
    fn run(&self, script: &str, variables: &[(&str, &Path)]) -> kit::Ran {
        let programs = Path::new(kit::binary()).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(&self.repository).env("PATH", path);
        for role in ["AUTHOR", "COMMITTER"] {
            shell.env(format!("GIT_{role}_NAME"), "test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        shell
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("GIT_DIR")
            .env("XDG_CACHE_HOME", &self.repository);
        shell.env("BASE", &self.base).env("CI_MERGE_REQUEST_DIFF_BASE_SHA", &self.base);
        shell.envs(variables.iter().copied()).output().unwrap().into()
    }
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Returns the name and the script of each step of a workflow.
fn steps(workflow: &str) -> Vec<(String, String)> {
    let step = |text: &str| {
        let (_, script) = text.split_once("        run: |\n")?;
        let lines: Vec<&str> = script.lines().map_while(|line| line.strip_prefix("          ")).collect();
        Some((text.lines().next()?.to_owned(), lines.join("\n")))
    };
    workflow.split("      - name: ").skip(1).filter_map(step).collect()
}

#[test]
fn github_workflow_annotates_the_slower_function() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("git") || !kit::need_program("make") {
        return;
    }
    let job = Job::new(&lab, "github");
    let summary = lab.path("summary.md");
    let variables = [("GITHUB_WORKSPACE", &*job.repository), ("GITHUB_STEP_SUMMARY", &*summary)];
    let steps = steps(&example("github-actions.yml"));
    let [install, build, compare, find] = &steps[..] else { panic!("{steps:?}") };
    assert!(install.0 == "Install pmc" && install.1.contains("cargo install"), "{install:?}");
    job.run(&build.1, &variables).expect(0);
    let compared = job.run(&compare.1, &variables).expect(1);
    compared.says(&[" slower", "\n::error title=pmc%3A regression::task-clock: +"]);
    let found = job.run(&find.1, &variables).expect(1);
    found.prints(&["base  10 recordings", "::error file=shop.c,line=", "regression::find in shop: +"]);
    let page = std::fs::read_to_string(summary).unwrap();
    assert_eq!(page.matches("### pmc: regression").count(), 2, "{page}");
}

#[test]
fn gitlab_job_writes_a_test_report() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("git") || !kit::need_program("make") {
        return;
    }
    let job = Job::new(&lab, "gitlab");
    let text = example("gitlab-ci.yml");
    let (_, script) = text.split_once("  script:\n").unwrap();
    let lines: Vec<&str> = script.lines().map_while(|line| line.strip_prefix("    - ")).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    job.run(&lines.join("\n"), &[]).expect(1);
    let report = std::fs::read_to_string(job.repository.join("performance.xml")).unwrap();
    assert!(report.contains("name=\"task-clock\">\n      <failure type=\"regression\""), "{report}");
}
