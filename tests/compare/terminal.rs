//! In an interactive shell on a pseudo-terminal.

use crate::Row;
use crate::bench::Bench;
use crate::plain::{scribe, times};
use crate::support::{eventually, ms, proc, secs};

pub const ROWS: &[Row] = &[
    Row {
        name: "terminal: Ctrl-C, trapped by a command that exits with 7",
        right: "arrives once, 7",
        case: ctrl_c,
    },
    Row {
        name: "terminal: Ctrl-C in a shell loop",
        right: "loop stops",
        case: loop_stops,
    },
    Row {
        name: "terminal: Ctrl-Z and `fg`",
        right: "prompt, goes on",
        case: ctrl_z,
    },
    Row {
        name: "terminal: command reads a line",
        right: "reads",
        case: reads,
    },
    Row {
        name: "terminal: the window is closed",
        right: "command ended",
        case: hang_up,
    },
];

/// The worst of a few: two signals in one moment may be told as one.
fn ctrl_c(bench: &Bench) -> String {
    let mut cells: Vec<String> = (0..4).map(|_| ctrl_c_once(&bench.another())).collect();
    cells.sort();
    cells.pop().expect("some")
}

fn ctrl_c_once(bench: &Bench) -> String {
    let command = scribe(bench);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let (pty, line) = bench.shell(&command);
    pty.send(&format!("{line}; echo \"code=$?;\"\n"));
    bench.wait_line("got", "ready");
    pty.send("\x03");
    // What was typed is shown as well, with `$?` in the place of the number.
    let code = || {
        let screen = pty.screen();
        let (_, rest) = screen.rsplit_once("code=")?;
        let (code, _) = rest.split_once(';')?;
        code.parse::<u8>().ok().map(|code| code.to_string())
    };
    // A shell that sees its job die of the key gives up the rest of the line.
    let prompt = || pty.screen().matches("ready$ ").count() >= 2;
    let _ = eventually(secs(3), || code().is_some() || prompt());
    let _ = eventually(ms(500), || bench.lines("got").contains(&"INT".to_owned()));
    let code = code().unwrap_or_else(|| {
        let word = if prompt() { "tool dies" } else { "no prompt" };
        word.to_owned()
    });
    format!("{}, {code}", times(bench, "INT"))
}

fn loop_stops(bench: &Bench) -> String {
    let (pty, line) = bench.shell(&["sleep", bench.word()]);
    pty.send(&format!("for i in 1 2 3; do {line}; echo \"L$i\"; done\n"));
    bench.wait_sleeper();
    pty.send("\x03");
    let _ = eventually(ms(1500), || pty.screen().contains("L1"));
    let goes_on = pty.screen().contains("L1");
    (if goes_on {
        "loop goes on"
    } else {
        "loop stops"
    })
    .to_owned()
}

fn ctrl_z(bench: &Bench) -> String {
    let (pty, line) = bench.shell(&["sleep", bench.word()]);
    pty.send(&format!("{line}\n"));
    let command = bench.wait_sleeper();
    let state = || proc::Proc::read(command).map(|p| p.state);
    pty.send("\x1a");
    let prompt = || pty.screen().matches("ready$ ").count() >= 2;
    if !eventually(secs(2), prompt) {
        return "no prompt".to_owned();
    }
    if state() != Some('T') {
        return "prompt, command runs on".to_owned();
    }
    pty.send("fg\n");
    let goes_on = eventually(secs(2), || state() == Some('S'));
    pty.send("\x03");
    let ends = eventually(secs(2), || bench.sleeper().is_none());
    let then = if goes_on && ends { "goes on" } else { "hangs" };
    format!("prompt, {then}")
}

fn reads(bench: &Bench) -> String {
    let (pty, line) = bench.shell(&["sh", "-c", "read -r line; echo \"got=$line\""]);
    pty.send(&format!("{line}; echo \"code=$?\"\n"));
    std::thread::sleep(ms(500));
    pty.send("words\n");
    let read = eventually(secs(2), || pty.screen().contains("got=words"));
    (if read { "reads" } else { "does not read" }).to_owned()
}

fn hang_up(bench: &Bench) -> String {
    let (mut pty, line) = bench.shell(&["sleep", bench.word()]);
    pty.send(&format!("{line}\n"));
    bench.wait_sleeper();
    pty.close();
    let ended = eventually(secs(2), || bench.sleeper().is_none());
    (if ended {
        "command ended"
    } else {
        "command runs on"
    })
    .to_owned()
}
