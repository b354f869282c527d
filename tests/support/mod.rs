//! What the tests of the outside share: servers, proxies, processes, terminals
//! and the witness of what ran. Everything is real and is gone when dropped.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code, unused_imports)]

pub mod inspect;
pub mod proc;
pub mod redis;
pub mod resp;
pub mod wait;

pub use redis::RedisServer;
pub use resp::{Resp, Value};
pub use wait::{eventually, long, wait_until};
