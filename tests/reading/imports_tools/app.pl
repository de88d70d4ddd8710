# A program with recursion, methods, a closure, generated code and a sort. `app.pl TURNS`.
use strict;
use warnings;

package Shape;

sub new {
    my ($class, $n) = @_;
    return bless { n => $n }, $class;
}

sub area {
    my $self = shift;
    main::leaf($self->{n});
    return $self->{n};
}

sub DESTROY {
    main::leaf(20);
}

package main;

sub leaf {
    my $n = shift;
    my $x = 0;
    $x += $_ * $_ % 7 for 0 .. $n;
    return $x;
}

sub fib {
    my $n = shift;
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

sub even {
    my $n = shift;
    return $n == 0 ? leaf(200) : odd($n - 1);
}

sub odd {
    my $n = shift;
    return $n == 0 ? leaf(100) : even($n - 1);
}

sub by_value {
    return $_[0] <=> $_[1];
}

sub sort_them {
    my @sorted = sort { by_value($a, $b) } reverse 1 .. 40;
    return scalar @sorted;
}

sub main {
    for (1 .. shift) {
        fib(10);
        even(21);
        Shape->new(30)->area;
        sort_them();
        eval 'leaf(50)';
        my $closure = sub { leaf(70) };
        $closure->();
    }
}

main($ARGV[0]);
