//! The command line: options, their help, and the environment that stands in for them.
