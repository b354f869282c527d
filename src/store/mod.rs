//! Where records live: Redis, a directory of files, memory.
