#!/bin/bash
# stackprof 0.2.21 (Debian 12), `stackprof --callgrind`: functions that are written in C have no own cost.
#
# A program that spends its time in Array#sort. The text report says that Array#sort itself has nearly all samples. In
# the callgrind file, Array#sort has a block without a line of costs, because the writer has source lines only for
# functions in Ruby. Its samples appear only as the cost of calls to it. A reader that adds up own costs, as the format
# asks for, finds 0 for Array#sort, and a sum of all functions that is a small part of the file's `summary:`.
#
# Seen (the numbers of samples vary):
#   text: Array#sort itself has 95 % of the samples
#   callgrind: Array#sort itself has 0 %; the own costs of all functions are 3 % of the summary
#
# Needs: apt, Debian 12, and its ruby.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q ruby-stackprof=0.2.21-2+b1 >download.log 2>&1 || { cat download.log; exit 1; }
dpkg -x ruby-stackprof_*.deb package
RUBYLIB=$(find "$folder/package/usr/lib" -path '*vendor_ruby*' \( -name stackprof.rb -o -name stackprof.so \) -printf '%h\n' |
    sed 's,/stackprof$,,' | sort -u | paste -sd:)
export RUBYLIB
cat >app.rb <<'RUBY'
require "stackprof"

def work
  numbers = (0...200_000).map { |number| number * 7919 % 1_000_003 }
  40.times { numbers.sort }
end

StackProf.run(mode: :cpu, interval: 1000, out: "out.dump") { work }
data = Marshal.load(File.binread("out.dump"))
report = StackProf::Report.new(data)
sort = data[:frames].values.find { |frame| frame[:name] == "Array#sort" }
puts "text: Array#sort itself has #{sort[:samples] * 100 / data[:samples]} % of the samples"

text = StringIO.new
report.print_callgrind(text)
own = Hash.new(0)
function = summary = nil
is_call = false
text.string.each_line(chomp: true) do |line|
  case line
  when /\Asummary: (\d+)/ then summary = $1.to_i
  when /\Afn=(.*)/ then function = $1
  when /\Acalls=/ then is_call = true
  when /\A\d+ (\d+)/
    own[function] += $1.to_i unless is_call
    is_call = false
  end
end
puts "callgrind: Array#sort itself has #{own["Array#sort"] * 100 / summary} %; " \
     "the own costs of all functions are #{own.values.sum * 100 / summary} % of the summary"
RUBY
output=$(ruby -rstringio app.rb)
echo "$output"
grep -qxE 'text: Array#sort itself has [6-9][0-9] % of the samples' <<<"$output"
grep -qxE 'callgrind: Array#sort itself has 0 %; the own costs of all functions are [1-3]?[0-9] % of the summary' <<<"$output"
