#!/bin/bash
# Xdebug 3.2.0 (Debian 12, PHP 8.2), profiles: the memory of a call is less than that of the calls that it makes.
#
# The callgrind format is a tree of sums: the cost of a call includes the costs of everything called from there, and
# `summary:` is the sum of all own costs. In Xdebug's second column, "Memory_(bytes)", a cost is the memory in use at the
# end of a call minus that at its start, and 0 if it is negative. So freed memory is missing where it was freed, but
# subtracted from the callers. Here, `both` allocates 4 MB in `fill` and frees it in `drop`, ten times: each call of
# `fill` costs 4 MB, `drop` 0, and each call of `both`, which made these calls, 0. The own costs add up to 40 MB;
# `summary:` says 4 MB, which is the peak.
#
# Seen:
#   a call of fill from both: 4 MB; a call of both: 0 MB
#   sum of own costs: 40 MB; summary: 4 MB
#
# Needs: apt, Debian 12, and its php8.2-cli.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q php-xdebug=3.2.0+3.1.6+2.9.8+2.8.1+2.5.5-3 php8.2-xdebug=3.2.0+3.1.6+2.9.8+2.8.1+2.5.5-3 \
    >download.log 2>&1 || { cat download.log; exit 1; }
for package in *.deb; do dpkg -x "$package" package; done
cat >app.php <<'PHP'
<?php
$store = null;
function fill() { global $store; $store = str_repeat("a", 4000000); }
function drop() { global $store; $store = null; }
function both() { fill(); drop(); }
for ($i = 0; $i < 10; $i++) { both(); }
PHP
php8.2 -n -d zend_extension="$(find "$folder/package" -name xdebug.so)" -d xdebug.mode=profile \
    -d xdebug.start_with_request=yes -d xdebug.output_dir="$folder" -d xdebug.use_compression=0 \
    -d xdebug.profiler_output_name=out.callgrind app.php
output=$(awk '
    function mb(bytes) { return int(bytes / 1000000 + 0.5) " MB" }
    # Names are numbered: fn=(2) fill, later fn=(2).
    /^c?fn=/ {
        number = substr($1, index($1, "=") + 1)
        if (NF > 1) names[number] = $2
        if (/^fn=/) caller = names[number]; else callee = names[number]
    }
    /^calls=/ { is_call = 1; next }
    /^[0-9]+ / {
        if (!is_call) own += $3
        if (is_call && callee == "fill" && caller == "both") fill = $3
        if (is_call && callee == "both") both = $3
        is_call = 0
    }
    /^summary:/ { summary = $3 }
    END {
        print "a call of fill from both: " mb(fill) "; a call of both: " mb(both)
        print "sum of own costs: " mb(own) "; summary: " mb(summary)
    }' out.callgrind)
echo "$output"
[ "$output" = "a call of fill from both: 4 MB; a call of both: 0 MB
sum of own costs: 40 MB; summary: 4 MB" ]
