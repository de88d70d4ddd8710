//! Requests to running counters: the one door to the kernel's counters, targets, groups, and why one could not be opened.
