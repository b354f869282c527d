//! The manual page.

use std::fmt::Write as _;

use clap_mangen::Man;
use solocron::cli::{VERSION, command, help};
use solocron::exit;

const DESCRIPTION: &str = "\
solocron runs COMMAND under a lock that all hosts share. Put it in front of any command: of any \
number of identical instances one runs it, and the others stand by.

Without --cron it runs the command once, if the lock is free. With --cron it stays and runs the \
command at every firing of the schedule. Every instance competes for every firing, so any of them \
may die at any time.

The lock is a lease in Redis, or in a directory of this machine. It is renewed while the command \
runs, and the command is stopped before the lease can run out. Exit status, signals, standard \
streams, terminal and working directory are what they would be without solocron.";

const SCHEDULES: &str = "\
A schedule is five fields as in crontab(5): minute, hour, day of month, month, day of week, with \
lists, ranges, steps and the names of months and days. Where neither day field begins with *, a \
day that matches either counts; otherwise both must match. @yearly, @annually, @monthly, @weekly, \
@daily, @midnight and @hourly stand for the usual ones.

Six fields put seconds first, seven add the year at the end. The day fields know L, LW, 15W, 5L, \
1#1 and ?. @every DUR counts from 1970-01-01T00:00:00Z, so that all hosts agree. H, H/15 and H(0-7) \
are numbers made from the lock name, which spread many jobs over the hour.

When clocks change by less than three hours, a fixed time that is left out fires once right after, \
and one that comes twice fires the first time; schedules whose minute, hour or seconds field begins \
with * follow the wall clock. This is the rule of cron(8).";

const PROMISES: &str = "\
One start per firing: among all instances that share a lock name, whatever their clocks say. A \
store that loses its record or its last writes can break this, and --on-runner-lost rerun and \
--retries ask for more starts.

No overlap: two commands under one lock name do not run at the same time, as long as clocks run at \
the same rate, no process is frozen for longer than the rest of its lease and the store keeps its \
record. Where that is not enough, let what is written to check SOLOCRON_TOKEN, which only rises.

Nobody is needed: any instance may die in any way, and every firing later than the dead one's lease \
runs on another.

The command is stopped before anyone else may start. SIGKILL of solocron takes the command with \
it, though not the command's children.";

/// The page.
pub fn page() -> Vec<u8> {
    let man = Man::new(command());
    let mut page = Vec::new();
    // Without a date, so that the page is the same on every day.
    line(
        &mut page,
        &format!(".TH SOLOCRON 1 \"\" \"solocron {VERSION}\" \"User Commands\""),
    );
    man.render_name_section(&mut page).expect("written");
    man.render_synopsis_section(&mut page).expect("written");
    paragraphs(&mut page, "DESCRIPTION", DESCRIPTION);
    let mut options = Vec::new();
    man.render_options_section(&mut options).expect("written");
    page.extend(with_subsections(&options));
    paragraphs(&mut page, "SCHEDULES", SCHEDULES);
    rows(&mut page, "EXIT STATUS", &exit::TABLE);
    rows(&mut page, "ENVIRONMENT", &help::ENVIRONMENT);
    paragraphs(&mut page, "PROMISES", PROMISES);
    examples(&mut page);
    paragraphs(
        &mut page,
        "SEE ALSO",
        "crontab(5), cron(8), flock(1), timeout(1)",
    );
    page
}

/// The headings of options, made subsections of one section.
fn with_subsections(options: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(options).expect("UTF-8");
    let mut made = String::new();
    for line in text.lines() {
        match line.strip_prefix(".SH ") {
            Some("OPTIONS") | None => made.push_str(line),
            Some(heading) => {
                let heading = heading.trim_matches('"');
                let (first, rest) = heading.split_at(1);
                let _ = write!(made, ".SS \"{first}{}\"", rest.to_lowercase());
            }
        }
        made.push('\n');
    }
    made.into_bytes()
}

fn paragraphs(page: &mut Vec<u8>, heading: &str, text: &str) {
    line(page, &format!(".SH \"{heading}\""));
    for (place, paragraph) in text.split("\n\n").enumerate() {
        if place > 0 {
            line(page, ".PP");
        }
        line(page, &escaped(paragraph));
    }
}

fn rows(page: &mut Vec<u8>, heading: &str, rows: &[(&str, &str)]) {
    line(page, &format!(".SH \"{heading}\""));
    for (key, meaning) in rows {
        line(page, ".TP");
        line(page, &format!("\\fB{}\\fR", escaped(key)));
        line(page, &escaped(meaning));
    }
}

fn examples(page: &mut Vec<u8>) {
    line(page, ".SH EXAMPLES");
    for (place, example) in help::EXAMPLES.iter().enumerate() {
        if !example.what.is_empty() {
            if place > 0 {
                line(page, ".PP");
            }
            line(page, &format!("{}:", escaped(example.what)));
        }
        line(page, ".PP");
        line(page, ".nf");
        line(page, &format!(".RS 4\n{}\n.RE", escaped(example.line)));
        line(page, ".fi");
    }
}

fn line(page: &mut Vec<u8>, text: &str) {
    page.extend_from_slice(text.as_bytes());
    page.push(b'\n');
}

/// A text in which roff sees no commands and no typographic quotes.
fn escaped(text: &str) -> String {
    let text = text
        .replace('\\', "\\(rs")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga");
    if text.starts_with('.') {
        format!("\\&{text}")
    } else {
        text
    }
}
