<?php
// Names come from the perf map that the JIT writes when it is told to.
function serve($price) {
    $sum = 0;
    for ($i = 0; $i < $price; $i++) $sum = ($sum + $i * $i) % 1000003;
    return $sum;
}

function cpu() {
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_utime.tv_usec'] / 1e6;
}

function day($seconds, $price) {
    $total = 0;
    for ($end = cpu() + $seconds; cpu() < $end;) $total ^= serve($price);
    return $total;
}

exit(day(1, (int)(10000 / (float)(getenv('PMC_TEST_LOOP_SPEED') ?: 1))) === 42 ? 1 : 0);
