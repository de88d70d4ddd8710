# Nothing tells a profiler which of Perl's functions run.
sub serve { my $sum = 0; $sum += $_ for 1 .. shift; return $sum }
sub day { my $total = 0; $total ^= serve(10000) for 1 .. shift; return $total }
exit(day(600) == 42);
