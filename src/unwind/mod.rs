//! Unwinding of copied stacks.
