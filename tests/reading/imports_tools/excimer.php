<?php
// `excimer.php SECONDS FOLDED REPORT`: runs app.php under Excimer. Writes its folded stacks, and its own sums of
// samples as lines `own inclusive name`.
[$_, $_, $folded, $report] = $argv;
$profiler = new ExcimerProfiler();
$profiler->setPeriod(0.001);
$profiler->setEventType(EXCIMER_CPU);
$profiler->start();
require __DIR__ . "/app.php";
$profiler->stop();
$log = $profiler->getLog();
file_put_contents($folded, $log->formatCollapsed());
$lines = "";
foreach ($log->aggregateByFunction() as $name => $sums) {
    $lines .= "{$sums['self']} {$sums['inclusive']} $name\n";
}
file_put_contents($report, $lines);
