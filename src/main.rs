//! `solocron`: the binary. Everything of substance is in the library.

fn main() {}
