//! What makes the runtimes of languages write down the names of the code they generate: words for a person.
//!
//! Said before a recording by `pmc profile`, and behind it by reports.

/// Of a Python before 3.12: docs.python.org, "Python support for the Linux perf profiler".
pub const PYTHON: &str = "Python 3.12 or newer, with -X perf or PYTHONPERFSUPPORT=1";
/// Of PHP 8: `ZEND_JIT_DEBUG_PERF` in its `zend_jit.h`.
pub const PHP: &str = "php -d opcache.enable_cli=1 -d opcache.jit=function -d opcache.jit_buffer_size=64M \
                       -d opcache.jit_debug=16";
/// Of Ruby 3.3: its "YJIT" page. What YJIT does not compile has no name.
pub const RUBY: &str = "ruby --yjit --yjit-perf, from Ruby 3.3 on";
/// Of Perl, which generates no code: its functions are measured inside of it only.
pub const PERL: &str = "perl -d:NYTProf, which measures inside of perl";
/// Of Erlang and Elixir.
pub const ERLANG: &str = "OTP 24 or newer with its JIT, and erl +JPperf true";
/// Of LuaJIT: its `lj_trace.c`.
pub const LUAJIT: &str = "a LuaJIT that was built with LUAJIT_USE_PERFTOOLS";
