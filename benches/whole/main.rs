//! What solocron costs, measured on whole processes against real servers.
//!
//! `benches/run` runs it; `benches/run SECTION...` runs some of the sections
//! `once`, `rest`, `firing`, `crowd`, `load`. Cases of one section take turns, so
//! that a busy machine hurts all alike. Where other work goes on, `chrt -f 10
//! benches/run` (as root) keeps it out of the figures.
//!
//! Variables: `SOLOCRON_BIN`, the binary to measure; `ROUNDS`, how often each
//! case of a section is run; `JSON`, the file for the figures.

#[path = "../../tests/support/mod.rs"]
mod support;

mod crowd;
mod firing;
mod load;
mod once;
mod place;
mod report;
mod rest;

use place::Place;
use report::Report;

type Section = fn(&Place, &mut Report);

const SECTIONS: [(&str, Section); 5] = [
    ("once", once::measure),
    ("rest", rest::measure),
    ("firing", firing::measure),
    ("crowd", crowd::measure),
    ("load", load::measure),
];

fn main() {
    // `cargo bench` adds a flag of its own.
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    for name in &chosen {
        assert!(
            SECTIONS.iter().any(|(known, _)| known == name),
            "no section {name}; there are once, rest, firing, crowd, load"
        );
    }
    let place = Place::new();
    let mut report = Report::default();
    for (name, measure) in SECTIONS {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            eprintln!("-- {name}");
            measure(&place, &mut report);
        }
    }
    println!("\n{}", report.table());
    let json = std::env::var_os("JSON").map_or_else(Place::json, Into::into);
    std::fs::write(&json, format!("{:#}\n", report.json()))
        .expect("a file to write the figures to");
    println!("figures as JSON: {}", json.display());
}
