//! `solocron`: the binary. Everything of substance is in the library.

use std::panic;

use solocron::app;
use solocron::exit::{Exit, Leave, of_signal};
use solocron::process::{Inherited, Signal, die_of, init};

fn main() {
    let inherited = Inherited::capture();
    // Before any thread or runtime exists, as process 1 forks.
    init::split_if_pid1(&inherited);
    // By unwinding, a panic has killed the command.
    let leave = panic::catch_unwind(|| app::run(&inherited));
    let status = match leave.unwrap_or(Leave::With(Exit::Internal.code())) {
        Leave::With(status) => status,
        Leave::DieOf(number) => {
            if let Some(signal) = Signal::from_number(number.into()) {
                die_of(signal);
            }
            of_signal(number)
        }
    };
    std::process::exit(status.into());
}
