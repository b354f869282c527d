//! The same cases through solocron and through others that stand in front of a
//! command: tini, dumb-init, timeout and flock. Prints a table in Markdown and
//! fails unless solocron is right in every row, and the README says so.
//!
//! `BLESS=1` puts the table into the README; filters choose rows by a part of
//! their names.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod container;
mod plain;
mod terminal;

use bench::{Bench, TOOLS, Tool};
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One case.
pub struct Row {
    /// what is done
    pub name: &'static str,
    /// what is right
    pub right: &'static str,
    /// what a tool makes of it
    pub case: fn(&Bench) -> String,
}

/// Most of a case's time is waiting.
const WORKERS: usize = 6;

/// The case says nothing about this tool.
pub const NOT_APPLICABLE: &str = "–";

const BEGIN: &str = "<!-- begin in front -->\n";
const END: &str = "<!-- end in front -->\n";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = args.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted =
        |row: &&Row| filters.is_empty() || filters.iter().any(|part| row.name.contains(*part));
    let all = [plain::ROWS, terminal::ROWS, container::ROWS];
    let rows: Vec<&Row> = all.into_iter().flatten().filter(wanted).collect();
    if args.iter().any(|word| word == "--list") {
        for row in &rows {
            println!("{}: test", row.name);
        }
        return ExitCode::SUCCESS;
    }
    let cells = run(&rows);
    let table = table(&rows, &cells);
    println!("{table}");
    let mut good = true;
    for (row, cells) in rows.iter().zip(&cells) {
        if cells[0] != row.right {
            eprintln!(
                "solocron, {}: {} instead of {}",
                row.name, cells[0], row.right
            );
            good = false;
        }
    }
    if filters.is_empty() && good {
        good = in_readme(&rows, &table);
    }
    ExitCode::from(u8::from(!good))
}

/// What each tool makes of each row.
fn run(rows: &[&Row]) -> Vec<Vec<String>> {
    let jobs: Vec<(&Row, &Tool)> = rows
        .iter()
        .flat_map(|row| TOOLS.iter().map(move |tool| (*row, tool)))
        .collect();
    let cells = Mutex::new(vec![String::new(); jobs.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((row, tool)) = jobs.get(index) else {
                        return;
                    };
                    let cell = catch_unwind(|| (row.case)(&Bench::new(tool)));
                    let cell = cell.unwrap_or_else(|_| "failed".to_owned());
                    cells.lock().expect("cells")[index] = cell;
                }
            });
        }
    });
    let cells = cells.into_inner().expect("cells");
    cells.chunks(TOOLS.len()).map(<[String]>::to_vec).collect()
}

fn table(rows: &[&Row], cells: &[Vec<String>]) -> String {
    let mut out = String::from("| case |");
    for tool in TOOLS {
        let _ = write!(out, " {} |", (tool.title)());
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(TOOLS.len()));
    out.push('\n');
    for (row, cells) in rows.iter().zip(cells) {
        let _ = write!(out, "| {} |", row.name);
        for cell in cells {
            let shown = if cell == row.right || cell == NOT_APPLICABLE {
                cell.clone()
            } else {
                format!("*{cell}*")
            };
            let _ = write!(out, " {shown} |");
        }
        out.push('\n');
    }
    out
}

/// The README has these rows with what solocron does; other tools' versions differ.
fn in_readme(rows: &[&Row], table: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path).expect("README.md");
    let parts = text.split_once(BEGIN);
    let Some((before, (block, after))) = parts.and_then(|(a, b)| Some((a, b.split_once(END)?)))
    else {
        eprintln!("README.md has no {BEGIN}");
        return false;
    };
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("README.md");
        return true;
    }
    let lacks = |row: &&&Row| !block.contains(&format!("| {} | {} |", row.name, row.right));
    let missing: Vec<&str> = rows.iter().filter(lacks).map(|row| row.name).collect();
    if !missing.is_empty() {
        eprintln!("README.md: its table lacks {missing:?}; BLESS=1 cargo test --test compare");
    }
    missing.is_empty()
}
