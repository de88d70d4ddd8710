<?php
// A program with recursion, methods, closures, an included file and generated code. `app.php SECONDS`: its
// CPU time.
namespace Shop;

function leaf(int $n): int
{
    $x = 0;
    for ($i = 0; $i < $n; $i++) {
        $x += $i * $i % 7;
    }
    return $x;
}

function fib(int $n): int
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function even(int $n): int
{
    return $n == 0 ? leaf(200) : odd($n - 1);
}

function odd(int $n): int
{
    return $n == 0 ? leaf(100) : even($n - 1);
}

class Cart
{
    private array $items = [];

    public static function make(int $n): self
    {
        $cart = new self();
        for ($i = 0; $i < $n; $i++) {
            $cart->add($i);
        }
        return $cart;
    }

    public function add(int $i): void
    {
        $this->items[] = $i;
        leaf(20);
    }

    public function total(): int
    {
        return array_sum(array_map(fn($x) => $x * leaf(30), $this->items));
    }

    public function __destruct()
    {
        leaf(100);
    }
}

function sort_them(): void
{
    $numbers = range(0, 40);
    usort($numbers, function ($a, $b) {
        return $b <=> $a;
    });
}

function cpu_time(): float
{
    $usage = getrusage();
    return $usage["ru_utime.tv_sec"] + $usage["ru_utime.tv_usec"] / 1e6;
}

function main(float $seconds): void
{
    $end = cpu_time() + $seconds;
    do {
        fib(10);
        even(21);
        Cart::make(30)->total();
        sort_them();
        include __DIR__ . "/part.php";
        eval('\Shop\leaf(50);');
    } while (cpu_time() < $end);
}

main((float) $argv[1]);
