//! The manual page, the completions and the README's tables are made from the
//! definition of the command line and checked in. These tests fail when they
//! are stale; `BLESS=1 cargo test --test generated` writes them again.

mod man;
mod readme;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap_complete::Shell;
use solocron::cli::command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a file with what it should be; writes it when asked to.
fn check(path: &Path, fresh: &[u8]) {
    let full = root().join(path);
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        fs::write(&full, fresh).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let found = fs::read(&full).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        found == fresh,
        "{} is stale: run BLESS=1 cargo test --test generated",
        path.display()
    );
}

fn completion(shell: Shell) -> (PathBuf, Vec<u8>) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "solocron", &mut script);
    let name = match shell {
        Shell::Bash => "solocron.bash",
        Shell::Zsh => "_solocron",
        Shell::Fish => "solocron.fish",
        Shell::Elvish => "solocron.elv",
        Shell::PowerShell => "_solocron.ps1",
        other => panic!("no file name for {other}"),
    };
    (Path::new("completions").join(name), script)
}

const SHELLS: [Shell; 5] = [
    Shell::Bash,
    Shell::Zsh,
    Shell::Fish,
    Shell::Elvish,
    Shell::PowerShell,
];

#[test]
fn the_completions_are_fresh() {
    for shell in SHELLS {
        let (path, script) = completion(shell);
        check(&path, &script);
    }
}

#[test]
fn the_manual_page_is_fresh() {
    check(Path::new("man/solocron.1"), &man::page());
}

#[test]
fn the_tables_of_the_readme_are_fresh() {
    let path = Path::new("README.md");
    let found = fs::read_to_string(root().join(path)).expect("the README");
    check(path, readme::with_fresh_tables(&found).as_bytes());
}

/// What bash offers behind these words.
fn offered_by_bash(words: &[&str]) -> Vec<String> {
    let driver = r#"
        script=$1; shift
        eval "$script"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        function=$(complete -p solocron | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" solocron "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let (_, script) = completion(Shell::Bash);
    let out = Command::new("bash")
        .args(["--norc", "-c", driver, "bash"])
        .arg(String::from_utf8(script).expect("UTF-8"))
        .args(words)
        .output()
        .expect("bash runs");
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_options_and_their_words() {
    assert_eq!(offered_by_bash(&["solocron", "--lock"]), ["--lock-name"]);
    assert_eq!(offered_by_bash(&["solocron", "--on-st"]), ["--on-stop"]);
    assert_eq!(
        offered_by_bash(&["solocron", "--overlap", ""]),
        ["skip", "queue"]
    );
    assert_eq!(
        offered_by_bash(&["solocron", "--ttl", "5s", "--log-format", "j"]),
        ["json"]
    );
}

#[test]
fn the_manual_page_has_no_warnings() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&man::page()).expect("written");
    let out = Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-z"])
        .arg(file.path())
        .output()
        .expect("groff runs: it is in the package groff-base");
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && told.is_empty(), "{told}");
}
