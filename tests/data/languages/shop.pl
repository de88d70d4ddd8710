# Nothing tells a profiler which of Perl's functions run.
sub serve { my $sum = 0; $sum += $_ for 1 .. shift; return $sum }
sub cpu { my ($user, $system) = times; return $user + $system }
my $price = 10000 / ($ENV{PMC_TEST_LOOP_SPEED} || 1);
sub day { my ($total, $end) = (0, cpu() + shift); $total ^= serve($price) while cpu() < $end; return $total }
exit(day(0.5) == 42);
