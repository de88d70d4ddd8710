#!/bin/bash
# Devel::NYTProf 6.12 (Debian 12), `nytprofcg`: calls from two functions on one source line come from a third function,
# which does not exist.
#
# NYTProf records for each called function the lines of its callers, with the set of functions that called from there.
# If two functions call from one line, its callgrind writer joins their names with ` or ` and writes the result as one
# caller. KCachegrind shows the function `main::first or main::second`. The real functions have no calls and only their
# own cost, which is nearly nothing, although the recording says how often each of them was called and how long it
# took.
#
# Seen:
#   caller of main::leaf: main::first or main::second
#   calls of main::leaf by main::first: 0
#
# Needs: apt, Debian 12, and its perl.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q libdevel-nytprof-perl=6.12+dfsg-1 >download.log 2>&1 || { cat download.log; exit 1; }
dpkg -x libdevel-nytprof-perl_*.deb package
PERL5LIB=$(find "$folder/package/usr/lib" -type d -path '*/perl5/*' -name Devel -printf '%h\n' | paste -sd:)
export PERL5LIB
cat >app.pl <<'PERL'
sub leaf { my $sum = 0; $sum += $_ for 1 .. 20000; return $sum }
sub first { leaf() } sub second { leaf() }
first() for 1 .. 100;
second() for 1 .. 300;
PERL
NYTPROF=file=out.nyt perl -d:NYTProf app.pl
perl package/usr/bin/nytprofcg --file out.nyt --out out.callgrind >nytprofcg.log
callers=$(awk '/^fn=/ { caller = substr($0, 4) } $0 == "cfn=main::leaf" { print caller }' out.callgrind)
echo "caller of main::leaf: $callers"
calls=$(awk '/^fn=/ { caller = $0 } $0 == "cfn=main::leaf" && caller == "fn=main::first" { count++ } END { print count + 0 }' out.callgrind)
echo "calls of main::leaf by main::first: $calls"
[ "$callers" = "main::first or main::second" ] && [ "$calls" = 0 ]
