//! What the tests of the outside share: servers, proxies, processes, terminals
//! and the witness of what ran. Everything is real and is gone when dropped.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code, unused_imports)]

pub mod fleet;
pub mod inspect;
pub mod place;
pub mod proc;
pub mod proxy;
pub mod pty;
pub mod redis;
pub mod resp;
pub mod running;
pub mod solocron;
pub mod wait;
pub mod witness;

pub use fleet::Fleet;
pub use place::Place;
pub use proxy::{Mode, Proxy};
pub use pty::Pty;
pub use redis::RedisServer;
pub use resp::{Resp, Value};
pub use running::{Outcome, Running};
pub use rustix::process::Signal;
pub use solocron::Solocron;
pub use wait::{eventually, long, ms, secs, wait_for, wait_until};
pub use witness::{Entry, Witness, now_ms};
