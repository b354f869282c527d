//! The README's tables.

use std::fmt::Write as _;

use solocron::cli::help;
use solocron::cli::options::OPTIONS;
use solocron::exit;

/// The README with each table made anew between its marks.
pub fn with_fresh_tables(readme: &str) -> String {
    let tables = [
        ("options", options()),
        ("statuses", two_columns("status", "when", &exit::TABLE)),
        (
            "environment",
            two_columns("variable", "meaning", &help::ENVIRONMENT),
        ),
    ];
    tables
        .iter()
        .fold(readme.to_owned(), |text, (name, table)| {
            let begin = format!("<!-- begin {name} -->\n");
            let end = format!("<!-- end {name} -->");
            let (before, rest) = text.split_once(&begin).expect("a mark");
            let (_, after) = rest.split_once(&end).expect("a mark");
            format!("{before}{begin}{table}{end}{after}")
        })
}

fn options() -> String {
    let mut table = String::from("| option | default | meaning |\n|---|---|---|\n");
    for spec in OPTIONS {
        let name = format!("{} {}", spec.opt.flag(), spec.value_name());
        let _ = writeln!(
            table,
            "| `{}` | {} | {} |",
            cell(name.trim()),
            cell(spec.default),
            cell(spec.help)
        );
    }
    table
}

fn two_columns(first: &str, second: &str, rows: &[(&str, &str)]) -> String {
    let mut table = format!("| {first} | {second} |\n|---|---|\n");
    for (key, meaning) in rows {
        let _ = writeln!(table, "| {} | {} |", cell(key), cell(meaning));
    }
    table
}

/// A text in which Markdown sees neither columns nor emphasis.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace("'*/5 * * * *'", "`*/5 * * * *`")
}
