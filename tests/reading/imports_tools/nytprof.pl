# `nytprof.pl FILE`: prints NYTProf's own sums in units of 100 nanoseconds, as lines `own inclusive name`.
use strict;
use warnings;
use Devel::NYTProf::Data;

my $profile = Devel::NYTProf::Data->new({ filename => $ARGV[0], quiet => 1 });
my $subs = $profile->subname_subinfo_map;
for my $name (sort keys %$subs) {
    my $sub = $subs->{$name};
    printf "%.0f %.0f %s\n", $sub->excl_time * 1e7, $sub->incl_time * 1e7, $name if $sub->calls;
}
