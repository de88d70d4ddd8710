//! Hints on how to make language runtimes publish the names of generated code.
//!
//! `pmc profile` prints them before a recording, and reports print them afterwards.

/// For Python before 3.12 (docs.python.org, "Python support for the Linux perf profiler").
pub const PYTHON: &str = "Python 3.12 or newer, with -X perf or PYTHONPERFSUPPORT=1";
/// For PHP 8 (`ZEND_JIT_DEBUG_PERF` in its `zend_jit.h`).
pub const PHP: &str = "php -d opcache.enable_cli=1 -d opcache.jit=function -d opcache.jit_buffer_size=64M \
                       -d opcache.jit_debug=16";
/// For Ruby 3.3 (see its page on YJIT). Code that YJIT does not compile has no names.
pub const RUBY: &str = "ruby --yjit --yjit-perf, from Ruby 3.3 on";
/// For Perl. Since it does not generate code, only a profiler inside the interpreter can measure its
/// functions.
pub const PERL: &str = "perl -d:NYTProf, a profiler inside perl";
/// For Erlang and Elixir.
pub const ERLANG: &str = "OTP 24 or newer with its JIT, and erl +JPperf true";
/// For LuaJIT (its `lj_trace.c`).
pub const LUAJIT: &str = "a LuaJIT built with LUAJIT_USE_PERFTOOLS";
