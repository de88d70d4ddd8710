<?php
// Names come from the perf map that the JIT writes when it is told to.
function serve($price) {
    $sum = 0;
    for ($i = 0; $i < $price; $i++) $sum = ($sum + $i * $i) % 1000003;
    return $sum;
}

function day($customers) {
    $total = 0;
    for ($i = 0; $i < $customers; $i++) $total ^= serve(10000);
    return $total;
}

exit(day(3000) === 42 ? 1 : 0);
