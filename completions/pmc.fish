# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pmc_global_optspecs
    string join \n buildid-dir= p/paginate no-pager h/help V/version
end

function __fish_pmc_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_pmc_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_pmc_using_subcommand
    set -l cmd (__fish_pmc_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c pmc -n "__fish_pmc_needs_command" -l buildid-dir -d 'Build-id cache directory [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c pmc -n "__fish_pmc_needs_command" -s p -l paginate -d 'Use a pager for long text, regardless of the setting `pager.COMMAND`'
complete -c pmc -n "__fish_pmc_needs_command" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_needs_command" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_needs_command" -s V -l version -d 'Print version'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "profile" -d 'Record a command or running processes, and show where their time went'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "latency" -d 'Measure the time between two events: system calls, functions, disk requests, waiting for a CPU'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat" -d 'Count events'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat-record" -d 'Write counts to a file (`pmc stat record`)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat-report" -d 'Show the counts in a file written by `pmc stat record` (`pmc stat report`)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "record" -d 'Sample a command, running processes or whole CPUs into a file'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "report" -d 'Show where the time went in a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "top" -d 'Show where time goes right now'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "trace" -d 'Show the system calls of a command, of processes or of the whole machine'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "annotate" -d 'Show the cost of each instruction and source line of a function'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "diff" -d 'Compare recordings, and tell differences from noise'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "compare" -d 'Run two commands alternately, and show how their time, counts and functions differ'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "script" -d 'Print the samples of a recording one by one'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "lock" -d 'Show waits for locks: for kernel locks, and for user-space locks with the threads that hold them'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "probe" -d 'Define probes in functions and lines, with the variables to read there'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "sched" -d 'Show which tasks wait for a CPU, for how long, and which run instead (`pmc sched record` records them)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "export" -d 'Export a recording for other tools: as flame graph, HTML, Firefox Profiler profile, pprof and more'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "flamegraph" -d 'Draw a flame graph of a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "symbolize" -d 'Add function names to stacks that were exported without them'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "evlist" -d 'List the events of a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "buildid-list" -d 'List the build-ids of the files in a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "inject" -d 'Rewrite a recording: add build-ids, add JIT code as files, unwind stacks, decompress'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "data" -d 'Convert a recording to another data format'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "buildid-cache" -d 'Manage the build-id cache: add, list and remove files'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "archive" -d 'Write a recording with its symbols into one file for other machines'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "kallsyms" -d 'Show the addresses of symbols in the running kernel'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "config" -d 'Show and change the perf settings that pmc uses'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "list" -d 'List the events that this machine can count; pmc tries each one'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "info" -d 'Show what this machine can measure, which processes use its counters, and what you are permitted to do'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "mcp" -d 'Answer AI agents\' questions about recordings (Model Context Protocol)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "persist" -d 'Keep events running without a recorder, to read them later'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "start" -d 'Count on all CPUs in the background until `pmc stop`'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stop" -d 'Show the counts since `pmc start`, and stop counting'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "reserve" -d 'Reserve the hardware counters'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "version" -d 'Show the version'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "help" -d 'List the commands, or show the options of one command'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s p -l pid -d 'Profile these running processes, by number or name' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l duration -l timeout -d 'Stop after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s F -l freq -d 'Sample frequency in Hz, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s e -l event -d 'Event to sample; implies --on-cpu' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l call-graph -d 'Call-chain method: auto, fp, dwarf or lbr; MODE,BYTES sets the size of stack copies' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s o -l output -d 'Recording to write, for pmc report and perf report' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l html -d 'Also write the result to this self-contained HTML page' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l format -d 'Also export the recording, to a file next to it: svg, folded, firefox, speedscope, pprof, callgrind, … (see pmc export)' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l theme -d 'Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s a -l all-cpus -d 'Profile everything on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l on-cpu -d 'Profile only time on a CPU, by sampling an event: cycles, or cpu-clock without hardware counters (the default with -a)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l wall -d 'Include waiting time, even with -a (the default for commands and processes)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l wakers -d 'Record who wakes the waiting threads, and who runs while they wait for a CPU'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l stdio -d 'Print plain text even on a terminal'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l no-runtime-env -d 'Do not set environment variables that make runtimes (Python, Node.js, JVM, .NET) report the names of generated code'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s v -l verbose -d 'Print all remarks about data quality'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l filter -d 'Filter expression for the preceding event (tracepoints only) or both events of the preceding preset' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s k -l key -d 'What pairs a begin event with its end event: tid, process, cpu, or tracepoint fields; BEGIN=END if the fields have different names [default: tid]' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s i -l input -d 'Read a pmc or perf recording that contains both events; `-` is stdin' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l timeout -l duration -d 'Stop after this time, in milliseconds or with a unit (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s I -l interval-print -d 'Also print the durations at this interval, in milliseconds or with a unit' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l slowest -d 'Number of slowest intervals to show' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l call-graph -d 'Sample call chains with this method: auto, dwarf or fp; dwarf,2048 sets the size of stack copies' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l flamegraph -d 'Draw the call chains of begin events as a flame graph, weighted by time (SVG; implies -g)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l folded -d 'Write the call chains of begin events as folded stacks; `-` writes them to stdout instead of the text' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l symfs -d 'Root directory of the recorded machine, for programs' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l vmlinux -d 'Kernel image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l nest -d 'Nest intervals with equal keys, as for recursive functions; by default, a second begin event replaces the first'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l no-inherit -d 'Do not measure child processes'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l heatmap -d 'Show the durations over time'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s g -d 'Sample call chains of begin events (--call-graph auto); the slowest intervals show them'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -l json -d 'Print JSON: one object for the whole measurement; with -I, also one per period, each on its own line'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s q -l quiet -d 'Print only durations, errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s e -l event -d 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pfm-events -d 'Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l perfevent-conf -d 'Count the events in this configuration file of PCP\'s pmdaperfevent (perfevent.conf)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l filter -d 'Filter expression for the tracepoints of the preceding -e' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l cputype -d 'On hybrid machines, count only on cores of this type, such as core or atom' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pmu-filter -d 'For events that several PMUs provide, count only on this PMU' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s G -l cgroup -d 'Count only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l for-each-cgroup -d 'Count every event in each of these cgroups' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s r -l repeat -d 'Run the command N times and show mean and spread; 0 repeats until interrupted' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l warmup -d 'With -r or --vs: run the command N times without counting first' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pre -l prepare -d 'Run this shell command before each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l post -d 'Run this shell command after each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s I -l interval-print -d 'Print counts at this interval, in milliseconds or with a unit (1s)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l interval-count -d 'With -I: stop after this many intervals' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l timeout -l duration -d 'Stop counting after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s D -l delay -d 'Delay before counting, in milliseconds or with a unit (2s); -1 waits for a --control command' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l vs -d 'Compare commands, run alternately (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l fail-if -d 'With --vs: exit with status 1 if this condition holds, such as \'worse > 3% and p < 0.01\', and with status 2 if the runs cannot tell' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l format -d 'With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit report' -r -f -a "github\t''
junit\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l listen -d 'Serve OpenMetrics over HTTP at this address (with -I)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l control -d 'Read commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l reserve -d 'Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s o -l output -d 'Write to this file instead of stderr' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-cache -d 'Print one row per cache of this level (L2) [default: the last level]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s x -l field-separator -d 'Print CSV with this separator and perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s j -l json -d 'Print JSON: one object per line with perf\'s fields (1), or one document with numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s M -l metrics -d 'Metrics by name or group, such as IPC, GHz, TopdownL1 or tma_memory_bound (see pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric -d 'Define a metric: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l td-level -d 'Number of --topdown levels to measure; each needs more counters [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l openmetrics -d 'Update an OpenMetrics scrape file (with -I); without a file, print the result in OpenMetrics format' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-group -d 'Count the events of a metric individually, not as a group'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-merge -d 'Count all events of each metric, even if other metrics count the same events'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s i -l no-inherit -d 'Do not count child processes'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l children -d 'Show separate counts for the command (or processes), for its child processes, and the sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l user-kernel -d 'Show separate counts for user mode and kernel'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l all-user -d 'Count in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l all-kernel -d 'Count in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s d -l detailed -d 'Add cache events; -dd and -ddd add more'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s S -l sync -d 'Call sync(2) before each run'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l table -d 'With -r: show a table with the time of each run'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s n -l null -d 'Measure only the time, without events'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l interval-clear -d 'With -I: clear the screen before each interval'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l exact -d 'Never scale counts: if there are more events than counters, spread the events over several runs'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l show-output -d 'Show the command\'s output in every run of -r, --vs and --exact, not only in the first'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-exit -d 'Record each thread\'s counts when it exits (to perf.data, or with `stat record` to -o FILE)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-cswitch -d 'Record each thread\'s counts between context switches and when it exits'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l append -d 'With -o: append to the file'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s A -l no-aggr -d 'Print one row per CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-thread -d 'Print one row per thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-core -d 'Print one row per core'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-cluster -d 'Print one row per cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-die -d 'Print one row per die'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-socket -d 'Print one row per socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-node -d 'Print one row per NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s v -l verbose -d 'Print details: opened events, unscaled counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s q -l quiet -d 'Omit the counts of the whole run; print only intervals (-I), the comparison (--vs) or the output file'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s B -l big-num -d 'Group the digits of large numbers as the locale does (default; see --no-big-num)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l scale -d 'Scale counts of multiplexed events to the full time (default; see --no-scale)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l summary -d 'With -I: also print totals at the end'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-csv-summary -d 'Do not prefix the CSV lines of totals with `summary`'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-merge -d 'Print one row per PMU instance instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-only -d 'Print only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l topdown -d 'Show how pipeline slots are used, as a top-down tree (see --td-level)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-threshold -d 'Do not count events that only metric thresholds need'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s e -l event -d 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pfm-events -d 'Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l perfevent-conf -d 'Count the events in this configuration file of PCP\'s pmdaperfevent (perfevent.conf)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l filter -d 'Filter expression for the tracepoints of the preceding -e' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l cputype -d 'On hybrid machines, count only on cores of this type, such as core or atom' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pmu-filter -d 'For events that several PMUs provide, count only on this PMU' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s G -l cgroup -d 'Count only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l for-each-cgroup -d 'Count every event in each of these cgroups' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s r -l repeat -d 'Run the command N times and show mean and spread; 0 repeats until interrupted' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l warmup -d 'With -r or --vs: run the command N times without counting first' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pre -l prepare -d 'Run this shell command before each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l post -d 'Run this shell command after each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s I -l interval-print -d 'Print counts at this interval, in milliseconds or with a unit (1s)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l interval-count -d 'With -I: stop after this many intervals' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l timeout -l duration -d 'Stop counting after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s D -l delay -d 'Delay before counting, in milliseconds or with a unit (2s); -1 waits for a --control command' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l vs -d 'Compare commands, run alternately (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l fail-if -d 'With --vs: exit with status 1 if this condition holds, such as \'worse > 3% and p < 0.01\', and with status 2 if the runs cannot tell' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l format -d 'With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit report' -r -f -a "github\t''
junit\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l listen -d 'Serve OpenMetrics over HTTP at this address (with -I)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l control -d 'Read commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l reserve -d 'Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s o -l output -d 'Write the counts to this file; `-` is stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-cache -d 'Print one row per cache of this level (L2) [default: the last level]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s x -l field-separator -d 'Print CSV with this separator and perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s j -l json -d 'Print JSON: one object per line with perf\'s fields (1), or one document with numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s M -l metrics -d 'Metrics by name or group, such as IPC, GHz, TopdownL1 or tma_memory_bound (see pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric -d 'Define a metric: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l td-level -d 'Number of --topdown levels to measure; each needs more counters [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l openmetrics -d 'Update an OpenMetrics scrape file (with -I); without a file, print the result in OpenMetrics format' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-group -d 'Count the events of a metric individually, not as a group'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-merge -d 'Count all events of each metric, even if other metrics count the same events'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s i -l no-inherit -d 'Do not count child processes'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l children -d 'Show separate counts for the command (or processes), for its child processes, and the sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l user-kernel -d 'Show separate counts for user mode and kernel'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l all-user -d 'Count in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l all-kernel -d 'Count in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s d -l detailed -d 'Add cache events; -dd and -ddd add more'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s S -l sync -d 'Call sync(2) before each run'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l table -d 'With -r: show a table with the time of each run'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s n -l null -d 'Measure only the time, without events'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l interval-clear -d 'With -I: clear the screen before each interval'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l exact -d 'Never scale counts: if there are more events than counters, spread the events over several runs'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l show-output -d 'Show the command\'s output in every run of -r, --vs and --exact, not only in the first'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-exit -d 'Record each thread\'s counts when it exits (to perf.data, or with `stat record` to -o FILE)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-cswitch -d 'Record each thread\'s counts between context switches and when it exits'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s A -l no-aggr -d 'Print one row per CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-thread -d 'Print one row per thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-core -d 'Print one row per core'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-cluster -d 'Print one row per cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-die -d 'Print one row per die'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-socket -d 'Print one row per socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-node -d 'Print one row per NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s v -l verbose -d 'Print details: opened events, unscaled counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s q -l quiet -d 'Omit the counts of the whole run; print only intervals (-I), the comparison (--vs) or the output file'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s B -l big-num -d 'Group the digits of large numbers as the locale does (default; see --no-big-num)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l scale -d 'Scale counts of multiplexed events to the full time (default; see --no-scale)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l summary -d 'With -I: also print totals at the end'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-csv-summary -d 'Do not prefix the CSV lines of totals with `summary`'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-merge -d 'Print one row per PMU instance instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-only -d 'Print only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l topdown -d 'Show how pipeline slots are used, as a top-down tree (see --td-level)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-threshold -d 'Do not count events that only metric thresholds need'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s o -l output -d 'Write to this file instead of stderr' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-cache -d 'Print one row per cache of this level (L2) [default: the last level]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s x -l field-separator -d 'Print CSV with this separator and perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s j -l json -d 'Print JSON: one object per line with perf\'s fields (1), or one document with numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s M -l metrics -d 'Metrics by name or group, such as IPC, GHz, TopdownL1 or tma_memory_bound (see pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric -d 'Define a metric: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l td-level -d 'Number of --topdown levels to measure; each needs more counters [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l openmetrics -d 'Update an OpenMetrics scrape file (with -I); without a file, print the result in OpenMetrics format' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l append -d 'With -o: append to the file'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-exit -d 'Show each thread\'s counts when it exits (recorded by stat --log-exit or record -s)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-cswitch -d 'Show each thread\'s counts between context switches (recorded by stat --log-cswitch)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s A -l no-aggr -d 'Print one row per CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-thread -d 'Print one row per thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-core -d 'Print one row per core'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-cluster -d 'Print one row per cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-die -d 'Print one row per die'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-socket -d 'Print one row per socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-node -d 'Print one row per NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s v -l verbose -d 'Print details: opened events, unscaled counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s q -l quiet -d 'Omit the counts of the whole run; print only intervals (-I), the comparison (--vs) or the output file'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s B -l big-num -d 'Group the digits of large numbers as the locale does (default; see --no-big-num)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l scale -d 'Scale counts of multiplexed events to the full time (default; see --no-scale)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l summary -d 'With -I: also print totals at the end'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-csv-summary -d 'Do not prefix the CSV lines of totals with `summary`'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-merge -d 'Print one row per PMU instance instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric-only -d 'Print only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l topdown -d 'Show how pipeline slots are used, as a top-down tree (see --td-level)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric-no-threshold -d 'Do not count events that only metric thresholds need'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s e -l event -d 'Events to sample (repeatable) [default: cycles, as precise as possible]' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l pfm-events -d 'Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l filter -d 'Filter expression for the tracepoints of the preceding -e' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s F -l freq -d 'Sample frequency in Hz, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s c -l count -d 'Sample every N events; `auto` uses the vendor\'s recommended period' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l call-graph -d 'Record call chains: auto[,BYTES] (stack copies and frame pointers), dwarf[,BYTES] (stack copies), fp (frame pointers), fp,defer (frame pointers, on return to user mode), lbr (branch records)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s G -l cgroup -d 'Record only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s o -l output -d 'Output file; `-` writes a stream to stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand record" -l timeout -l duration -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l unwind -d 'With dwarf and auto: live unwinds stacks while recording; deferred writes stack copies, as perf does, and unwinds them when the file is read' -r -f -a "live\t''
deferred\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -s r -l realtime -d 'Real-time priority (SCHED_FIFO) of the recorder' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s S -l snapshot -d 'Keep the newest records in memory; write a file on SIGUSR2, on the --control command snapshot, and at the end; SIZE limits the trace data' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-output -d 'Start a new file on SIGUSR2 (signal), at this size (100M), or after this time (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-output-event -d 'Start a new file when one of these events occurs; the events themselves are not recorded' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-max-files -d 'With --switch-output: keep only the newest N files' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-exec -d 'With --switch-output: run this shell command for each finished file, which is "$1"' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l max-size -d 'Stop recording when the file reaches this size, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s z -l compression-level -d 'Compress the file with zstd at this level, 1 to 22' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l synth -d 'Synthesize records for running tasks: task, mmap (includes task), cgroup, all, or no' -r -f -a "no\t''
all\t''
task\t''
mmap\t''
cgroup\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -l control -d 'Read commands (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two); AREA sizes the AUX buffer' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s D -l delay -d 'Delay before recording, in milliseconds or with a unit (2s); -1 waits for --control; 10-20,30-40 records only these ranges and then ends' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l off-cpu-thresh -d 'Sum up waits shorter than this, without their stacks, in milliseconds or with a unit [default: 0]' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s j -l branch-filter -d 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s I -l intr-regs -d 'Record the registers at the interrupt: all, or a list; `?` prints the names' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l user-regs -d 'Record the user-space registers: all, or a list; `?` prints the names' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s k -l clockid -d 'Clock of the timestamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l aux-sample -d 'Attach the newest SIZE bytes of the trace to samples of events in its group [default: 4K]' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l reserve -d 'Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l exclude-perf -d 'Do not record tracepoint events that pmc itself causes'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l strict-freq -d 'Fail if the kernel does not allow this frequency'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l strict -d 'Fail instead of falling back to another event or frequency'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s g -d 'Record call chains by frame pointers (-g dwarf is --call-graph dwarf)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l kernel-callchains -d 'Record only the kernel part of call chains'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l user-callchains -d 'Record only the user part of call chains'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s i -l no-inherit -d 'Do not record child processes'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l per-thread -d 'Use one ring buffer per thread instead of per CPU; excludes child processes'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-join -d 'Do not complete truncated stacks from earlier samples of the thread (with --unwind live)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s B -l no-buildid -d 'Do not collect build-ids'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s N -l no-buildid-cache -d 'Do not copy the sampled files to the build-id cache (see pmc buildid-cache)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l buildid-all -d 'Record the build-ids of all mapped files, not only of files with samples'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l timestamp-filename -d 'Append the date and time to the file name'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l json -d 'Print a JSON summary to stdout when done'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-buffering -d 'Read each record immediately after it is written'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l off-cpu -d 'Also record where threads wait: off-CPU time, with the stack of each wait'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l wakers -d 'Record who wakes the waiting threads, and who runs while they wait for a CPU (requires --off-cpu or --wall)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l wall -d 'Record all of each thread\'s time, running and waiting; short for --off-cpu -e cpu-clock'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s n -l no-samples -d 'Record no samples, only mappings and processes'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s T -l timestamp -d 'Record the time of each sample (default)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s P -l period -d 'Record the period of each sample (default if it varies)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-period -d 'Do not record the period of samples'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s d -l data -d 'Record data addresses and data sources'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-mem-info -d 'Record the data source of memory accesses'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l data-mmap -d 'Also record data mappings'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l phys-data -d 'Record physical addresses of data'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l data-page-size -d 'Record the page size of data addresses'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l code-page-size -d 'Record the page size of code addresses'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s W -l weight -d 'Record the cost of each sampled instruction, if the hardware reports it'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l transaction -d 'Record the flags of memory transactions'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s s -l stat -d 'Record each thread\'s counts when it ends'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-cpu -d 'Record the CPU of each sample'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s R -l raw-samples -d 'Record raw data for all events that provide it'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s b -l branch-any -d 'Record taken branches'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-events -d 'Record context switches'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l latency -d 'Record when each thread ran, so that report can show shares of wall-clock time'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l namespaces -d 'Record namespaces'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-cgroups -d 'Record cgroups'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-user -d 'Record in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-kernel -d 'Record in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l overwrite -d 'Keep the newest records in memory and write them at the end'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l backlog -d 'For persistent events, include the records that they already hold'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l buildid-mmap -d 'Same as -N: mappings carry build-ids by default if the kernel provides them'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l group -d 'Put all events into one group'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l running-time -d 'With recorded counts (:S), also record how long events were enabled and running'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-identifier -d 'Start each sample with the event id, even with a single event'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l dry-run -d 'Open the events but do not record'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s i -l input -d 'The recording' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -s s -l sort -d 'Sort keys: comm, pid, tgid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, parent, parallelism, …; +KEY adds a key to the default' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s F -l fields -d 'Columns, in order: overhead, overhead_children, latency, latency_children, sample, period, and sort keys; +FIELD adds a column to the default' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s g -l call-graph -d 'Print call chains under each row: order (caller, callee, none), style (graph, fractal, flat, folded), value (percent, period, count), minimum percentage' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l percent-limit -d 'Hide rows and tree branches below this percentage' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l percentage -d 'What percentages refer to: all samples (absolute) or those that pass the filters (relative) [default: absolute]' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -l limit -l max-rows -d 'Maximum number of rows; with --json, also of tree nodes and modules; 0 shows all [default: 20; all in a pipe, and with -t, --csv or --json]' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l max-stack -d 'Maximum number of frames in a call chain; outer frames beyond this are dropped' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s d -l dsos -d 'Include only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s S -l symbols -d 'Include only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l symbol-filter -d 'Include only functions whose names contain this' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l state -d 'Include only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting (both)' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s p -l parent -d 'Also sort by the innermost caller that matches this pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l ignore-callees -d 'Attribute the cost of callees to these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l socket-filter -d 'Include only samples on the CPUs of this socket' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l parallelism -d 'Include only samples taken while this many threads ran, such as 1 or 1-2,8 (requires pmc record --latency)' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l time-quantum -d 'Length of a time slice for the sort key time, in milliseconds or with a unit (s, ms, us, ns)' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s t -l field-separator -d 'Separate fields with this string and print nothing else' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l group-sort-idx -d 'Sort by the member of the group with this index' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stdio-color -l color -d 'When to colour the output: always (also selects the terminal\'s text format in a pipe), never, or auto (on a terminal)' -r -f -a "always\t''
never\t''
auto\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -l theme -d 'Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -s w -l column-widths -d 'Column widths' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s G -l inverted -d 'Print call chains from the caller down'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tree -d 'Print one call tree below the table instead of call chains under each row (default on a terminal without -g)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l children -d 'Include callees in the cost of a function (default with call chains)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-children -d 'Show only the self cost of functions'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s n -l show-nr-samples -d 'Show the number of samples'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-total-period -d 'Show the sum of periods'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-cpu-utilization -d 'Show the kernel and user share of each row'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stitch-lbr -d 'Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s U -l hide-unresolved -d 'Include only functions with known names'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s x -l exclude-other -d 'Include only samples with a caller that matches --parent'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l inline -d 'Show inlined functions and source lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-inline -d 'Do not look for inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s b -l branch-stack -d 'Count each branch of the recorded branch stacks (default if there are any)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-branch-stack -d 'Count samples instead of branches'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l mem-mode -d 'Show memory accesses by cost; by default, with all sort keys for data and caches'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l latency -d 'Sort by wall-clock time instead of CPU time (requires pmc record --latency)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l ns -d 'Show times in nanoseconds'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s I -l header -d 'Print the recording\'s header first'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l header-only -d 'Print only the recording\'s header'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stats -d 'Print only the number of records of each kind'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s D -l dump-raw-trace -d 'Dump all records (raw bytes and decoded fields) and the number of records of each kind'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tasks -d 'Print only the processes and threads'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l mmaps -d 'Print only the processes and threads with their mappings'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s T -l threads -d 'Also show each thread\'s counts when it exits (requires pmc record -s)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l full-names -d 'Print full function names; by default text on a terminal omits template arguments, return types and compiler suffixes'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l full-source-path -d 'Show full paths of source files'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l raw-trace -d 'Show tracepoint fields one by one instead of the formatted text'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s H -l hierarchy -d 'Group rows by the first sort key, then by the next, as a hierarchy'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l collapse-recursion -d 'Fold direct recursion into one branch of the tree'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l group -d 'Print all events side by side, not only those recorded as a group'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-group -d 'Print a separate table for each event, even in a group'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stdio -d 'Print plain text even on a terminal'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l csv -d 'Print the table as CSV'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s v -l verbose -d 'Print all remarks about data quality, each module without symbols, and its remedy'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s q -l quiet -d 'Print rows without headings, and no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s e -l event -d 'Events to sample (repeatable) [default: cycles, as precise as possible]' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l pfm-events -d 'Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l filter -d 'Filter expression for the tracepoints of the last -e (repeatable; all must match)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s F -l freq -d 'Sample frequency in Hz, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s c -l count -d 'Sample every N events; `auto` uses the vendor\'s recommended period' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l call-graph -d 'Sample call chains: fp (frame pointers) or lbr (branch records)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l max-stack -d 'Maximum number of frames in a call chain [default: 127]' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s G -l cgroup -d 'Sample only in this cgroup; a list assigns one cgroup to each event' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s d -l delay -d 'Update interval, in seconds or with a unit (500ms) [default: 2]' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s s -l sort -d 'Sort keys: comm, pid, tgid, tid, dso, sym, srcline, srcfile, cpu, socket, cgroup, weight, addr' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l fields -d 'Columns, in order: overhead, overhead_children, sample, period, and sort keys' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l group-sort-idx -d 'Sort by the member of the group with this index' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s w -l column-widths -d 'Column widths of the text' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l percent-limit -d 'Hide rows and tree branches below this percentage' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s f -l count-filter -d 'Hide rows with this many samples or fewer' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l percentage -d 'What percentages refer to: all samples (absolute) or those that pass the filters (relative)' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -s E -l entries -l limit -d 'Maximum number of rows per table; 0 shows all [default: 20; all with --json]' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l ignore-callees -d 'Attribute the cost of callees to these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l dsos -d 'Include only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l symbols -d 'Include only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s M -l disassembler-style -d 'x86 assembly syntax: att or intel' -r -f -a "att\t''
intel\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l prefix -d 'Directory that replaces the start of source paths; --prefix-strip sets how many components' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l prefix-strip -d 'Number of leading components to strip from source paths' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s r -l realtime -d 'Real-time priority (1 to 99) of the thread that reads the ring buffers' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l theme -d 'Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l timeout -l duration -d 'Stop after this time, in milliseconds or with a unit (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s k -l vmlinux -d 'Kernel image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l kallsyms -d 'Copy of /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l reserve -d 'Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s g -d 'Sample call chains by frame pointers'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s i -l no-inherit -d 'Do not sample child processes'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s K -l hide-kernel-symbols -d 'Hide kernel samples'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s U -l hide-user-symbols -d 'Hide user samples'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l off-cpu -d 'Also measure where threads wait: off-CPU time, with the stack of each wait'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l wall -d 'Measure all time of each thread, running (cpu-clock) and waiting: --off-cpu -e cpu-clock'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l idle -d 'Also show the kernel\'s idle functions, and threads waiting for work'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s z -l zero -d 'Reset counts after each update instead of letting older samples decay'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l accumulate -d 'Keep all samples since the start instead of letting older ones decay'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s H -l hierarchy -d 'Group rows by the first sort key, then by the next, as a hierarchy (text only)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l group -d 'Show events side by side in one table'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s n -l show-nr-samples -d 'Show the number of samples'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l show-total-period -d 'Show the sum of periods'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l children -d 'Include callees in the cost of a function (default with call chains)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-children -d 'Show only the self cost of functions'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l stdio -d 'Print plain tables, as in a pipe'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l tui -d 'Use the full-screen interface (default on a terminal)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l json -d 'Print a JSON object with all rows on a separate line for each interval'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s q -l quiet -d 'Print errors only'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s e -l expr -l event -d 'Trace only these calls: names, %CLASS as in strace, /REGEX/, NAME*; a leading ! excludes them' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l min-duration -d 'Show only calls that take at least this long, in milliseconds or with a unit (50us)' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l string-limit -d 'Maximum number of bytes to print of a string or buffer; paths are printed in full' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l max-events -d 'Stop after this many calls' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l summary-mode -d 'Tables that -s prints: one per thread plus one for all threads, or only the latter' -r -f -a "thread\t''
total\t''"
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l max-summary -l limit -d 'Maximum number of rows of each table, and of calls printed with --json; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l call-graph -d 'Print the stack of each call, unwound with this method: auto, dwarf or fp; dwarf,16384 sets the size of stack copies' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l max-stack -d 'Maximum number of frames in a stack' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s G -l cgroup -d 'Trace only processes in this cgroup (with -a)' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l filter-pids -d 'Exclude these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s i -l input -d 'Read this recording instead of tracing; `-` reads standard input' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s o -l output -d 'Write to this file instead of stderr (stdout if no command is run)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s D -l delay -d 'Delay before tracing, in milliseconds or with a unit (2s)' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l timeout -d 'Stop after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l duration -d 'With a unit (10s), the same as --timeout; a bare number is perf\'s option and means --min-duration' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two) [default: 8M]' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s r -l realtime -d 'Real-time priority of pmc, which avoids losing calls on a busy machine; 0: none [default: 1, if permitted]' -r
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l failure -d 'Show only calls that fail'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s s -l summary -d 'Print only tables: one of each thread\'s calls, and one of all calls'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s S -l with-summary -d 'Print each call, then the tables of -s'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s c -l summary-only -d 'Print only one table of all calls, with the columns of strace -c'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s T -l time -d 'Print timestamps of the clock, in milliseconds, instead of times since the first call'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l errno-summary -d 'In tables, show how often each error occurred'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s g -d 'Print the stack of each call, after tracing has ended; short for --call-graph auto'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l no-inherit -d 'Do not trace child processes'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -l json -d 'Print one JSON object per call; with -s or -c, one document'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s q -l quiet -d 'Print only calls, errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s s -l symbol -d 'The function' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s d -l dsos -l dso -d 'Only functions of these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l functions -d 'Number of functions to show if none is named; 0 shows all' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l percent-limit -d 'Hide functions below this percentage of the event\'s total' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l percent-type -d 'What percentages refer to: the function (local) or all samples (global), by period or by hits' -r -f -a "local-period\t''
local-hits\t''
global-period\t''
global-hits\t''
period-local\t''
period-global\t''
hits-local\t''
hits-global\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l limit -l max-rows -d 'Maximum number of rows per function: the N consecutive rows with the most samples; 0 shows all' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s M -l disassembler-style -d 'x86 assembly syntax: att or intel' -r -f -a "att\t''
intel\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l prefix -d 'Directory that replaces the start of source paths; --prefix-strip sets how many components' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l prefix-strip -d 'Number of leading components to strip from source paths' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l theme -d 'Colours for a dark or light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio-color -l color -d 'When to colour the output: always, never, or auto (on a terminal)' -r -f -a "always\t''
never\t''
auto\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l kcore -d 'Copy of the recorded machine\'s /proc/kcore' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s n -l show-nr-samples -d 'Also show the number of samples (replaces percentages in perf\'s row format)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l show-total-period -d 'Also show the sum of periods (replaces percentages in perf\'s row format)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l skip-missing -d 'Skip functions that cannot be disassembled'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l asm-raw -d 'Show the bytes of each instruction'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-asm-raw -d 'Do not show the bytes of each instruction (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l source -d 'Show source lines between the instructions (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-source -d 'Show instructions only'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l source-only -d 'Show source lines only'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s l -l print-line -d 'Show the file name before each line number'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s P -l full-paths -d 'Show full paths of source files'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l group -d 'In perf\'s row format, show all events side by side, not only those recorded as a group'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tui -d 'Use the full-screen interface (default on a terminal)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio -d 'Print text even on a terminal (implied by text options such as --limit); in a pipe, print perf\'s row format'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio2 -d 'Print pmc\'s own listing, with jump arrows and error margins, even when piped'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s q -l quiet -d 'Print no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l vs -d 'Recordings of a new version, to compare as a group with the recordings before --vs' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l fail-if -d 'Exit with status 1 if this condition holds, such as \'worse > 3% and p < 0.01\', and with status 2 if the recordings cannot tell' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l format -d 'With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit report' -r -f -a "github\t''
junit\t''"
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s s -l sort -d 'Sort keys: dso, sym, srcline, srcfile, comm, pid, tgid, tid, cpu and the other keys of pmc report' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s c -l compute -d 'Comparison: delta, delta-abs, time, ratio, or wdiff:W1,W2 [default: delta-abs; in text output, time if all recordings are of cpu-clock or task-clock]' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s o -l order -d 'Sort by the baseline (0), or by the change in the Nth recording after it' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l percent-limit -d 'Hide rows that are below this percentage in every recording' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l limit -l max-rows -d 'Maximum number of rows; with --json, also of tree nodes; 0 shows all [default: 20; all with -t, --csv or --json]; with --stream, of call chains per recording [default: 10]' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l percentage -d 'What percentages refer to: all samples (absolute) or those that pass the filters (relative)' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s C -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s d -l dsos -d 'Include only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s S -l symbols -d 'Include only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l time -d 'Include only this part of each recording, such as 10%-20%, or FROM,TO in seconds of its clock' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l state -d 'Compare only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting (both) [default: running and blocked, each in its own table]' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s t -l field-separator -d 'Separate fields with this string' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s b -l baseline-only -d 'Show only rows that exist in the baseline'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s p -l period -d 'Show the sum of periods'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s F -l formula -d 'Show how each value was computed'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tree -d 'Compare the call trees'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l stream -d 'Compare the hottest call chains frame by frame, by function and source line (or by the keys of -s)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l stdio -d 'Print plain text (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l csv -d 'Print the rows as CSV'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s q -l quiet -d 'Print no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s r -l repeat -d 'Number of counted runs, and of profiled runs, of each command [default: 10; with --fail-if, as many profiled runs as the condition needs]' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l budget -d 'Time after which pmc adds no more runs for --fail-if' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l warmup -d 'Run each command N times without counting first' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s e -l event -d 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l sample -d 'Event to sample [default: cycles, or cpu-clock]' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s F -l freq -d 'Sample frequency in Hz, or `max` [default: 4000 to 50000, more for shorter runs; with stacks 4000]' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l call-graph -d 'How to record call stacks: auto, fp, dwarf or lbr [default: auto with -o; otherwise none]' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s s -l sort -d 'Sort keys: sym, dso, srcline, comm and the other keys of pmc diff' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l limit -l max-rows -d 'Maximum number of changed rows to print; 0 prints all [default: 10; all with --json]' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s o -l output -d 'Write an HTML page with all functions and a differential flame graph; `-` writes it to stdout instead of the text' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l fail-if -d 'Exit with status 1 if this condition holds for the time, a count or a function, such as \'worse > 3% and p < 0.01\', and with status 2 if the runs cannot tell' -r
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l format -d 'With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit report' -r -f -a "github\t''
junit\t''"
complete -c pmc -n "__fish_pmc_using_subcommand compare" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s F -l fields -d 'Fields to print; +NAME and -NAME change the default; a prefix hw:, sw:, trace: or raw: selects the event type' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l stop-bt -d 'Stop call chains after these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s S -l symbols -d 'Print only samples in these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dsos -d 'Print only samples in these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l max-blocks -d 'Maximum number of code blocks between branches to print, for the brstackinsn fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l limit -d 'Maximum number of samples and records to print; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s G -l hide-call-graph -d 'Do not print call chains'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l stitch-lbr -d 'Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l ns -d 'Show times in nanoseconds'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l reltime -d 'Print times relative to the first line'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l deltatime -d 'Print times relative to the previous line'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-task-events -d 'Also print forks, exits and name changes'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-mmap-events -d 'Also print mappings'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-switch-events -d 'Also print context switches, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-lost-events -d 'Also print lost records'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-namespace-events -d 'Also print namespaces, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-cgroup-events -d 'Also print cgroups, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-bpf-events -d 'Also print BPF program loads and unloads, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-text-poke-events -d 'Also print changes of kernel code, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-round-events -d 'Also print the records that end each of the recorder\'s rounds'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s D -l dump-raw-trace -d 'Also dump all records, as bytes and fields'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dump-unsorted-raw-trace -d 'Same as -D, but in file order instead of time order'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s I -l header -d 'Print the recording\'s header first'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l header-only -d 'Print only the recording\'s header'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l inline -d 'Show inlined functions (default with stack copies, as in perf)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-inline -d 'Do not look for inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l full-source-path -d 'Show full paths of source files'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l per-event-dump -d 'Write each event\'s lines to a separate file next to the recording: FILE.EVENT.dump'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s j -l json -d 'Print one JSON object per line'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and not __fish_seen_subcommand_from record user contention" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and not __fish_seen_subcommand_from record user contention" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and not __fish_seen_subcommand_from record user contention" -f -a "record" -d 'Record waits for locks into a file'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and not __fish_seen_subcommand_from record user contention" -f -a "user" -d 'Show waits for user-space locks, and which threads hold them'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and not __fish_seen_subcommand_from record user contention" -f -a "contention" -d 'Show waits for kernel locks'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s o -l output -d 'Output file; `-` writes a stream to stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -l max-stack -d 'Maximum number of frames in the call chains of kernel locks' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s p -l pid -d 'Record these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -l tid -d 'Record these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s C -l cpu -d 'Record system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -l duration -l timeout -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -l user -d 'Record user-space locks instead of kernel locks'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s a -l all-cpus -d 'Record system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s i -l input -d 'Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s o -l output -d 'Recording to write' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s E -l entries -l limit -d 'Maximum number of locks to print; 0 prints all [default: 10; all with --json]' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l vmlinux -d 'Recorded kernel\'s image with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s p -l pid -d 'Record these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l tid -d 'Record these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s C -l cpu -d 'Record system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l duration -l timeout -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s v -l verbose -d 'Print all waiting and holding functions, not only the three with the longest times'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s a -l all-cpus -d 'Record system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from user" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s i -l input -d 'Recording to read instead of making one [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s k -l key -d 'Sort by: contended, wait_total, wait_max, wait_min or avg_wait' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s F -l field -d 'Columns, with the names that --key takes [default: contended,wait_total,wait_max,avg_wait]' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s Y -l type-filter -d 'Only locks of these types: spinlock, rwlock, rwlock:R, rwsem, mutex, …' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s L -l lock-filter -d 'Only these locks, by address or symbol' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s S -l callstack-filter -d 'Only waits with a function in their stack whose name contains one of these' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s E -l entries -l limit -d 'Maximum number of rows to print; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s M -l map-nr-entries -d 'No effect: pmc uses no BPF maps' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l stack-skip -d 'Number of innermost functions to skip when looking for the caller' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s x -l field-separator -d 'Print comma-separated values, with this separator' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l output -d 'Write the table to this file' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l vmlinux -d 'Recorded kernel\'s image with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s p -l pid -d 'Record these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l tid -d 'Record these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s C -l cpu -d 'Record system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l duration -l timeout -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s t -l threads -d 'Show the threads that wait'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s l -l lock-addr -d 'Show the locks, by address and symbol'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s o -l lock-owner -d 'Show the threads that release the locks for which others wait'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s b -l use-bpf -d 'No effect: pmc records events instead of counting with BPF'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s f -l force -d 'No effect: pmc reads recordings of any owner'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s v -l verbose -d 'Print the stacks'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s a -l all-cpus -d 'Record system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand lock; and __fish_seen_subcommand_from contention" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s x -l exec -d 'Program or library to probe; without it, the kernel' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s m -l module -d 'Kernel module to probe' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s a -l add -d 'Add a probe: [[GROUP:]EVENT=]PLACE [[NAME=]VALUE[:TYPE] …]' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s d -l del -d 'Delete probes: [GROUP:]EVENT, or a pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s l -l list -d 'List probes: all, or [GROUP:]EVENT, or a pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s L -l line -d 'Show the lines that can be probed: FUNCTION, FILE, or FUNCTION:FIRST-LAST' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s V -l vars -d 'Show the variables that can be read at a place' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s F -l funcs -d 'List the functions that can be probed: those that match a pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s D -l definition -d 'Print the definitions for uprobe_events or kprobe_events instead of writing them' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -l max-probes -d 'Maximum number of places that one definition may probe' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -l filter -d 'With -F or -V, only names that match: patterns with !, & and |' -r
complete -c pmc -n "__fish_pmc_using_subcommand probe" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s n -l dry-run -d 'Only print what would be added or deleted'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s f -l force -d 'If an event with the new name exists, add a suffix to the name'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -l externs -d 'With -V, also show global variables'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -l no-inlines -d 'Do not probe inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s q -l quiet -d 'Print errors only'
complete -c pmc -n "__fish_pmc_using_subcommand probe" -s v -l verbose -d 'Also print the definitions that are written'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -s i -l input -d 'Recording to read [default: perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -s f -l force -d 'No effect: pmc reads recordings of any owner'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -s v -l verbose -d 'No effect: damage and losses are always reported'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -s D -l dump-raw-trace -d 'Not supported: pmc script -D dumps all records'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -f -a "record" -d 'Record the scheduler\'s events; options as for pmc record'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -f -a "latency" -d 'Show the delays of each task between waking and running'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -f -a "timehist" -d 'Show each time that a task ran, and how long it had waited'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -f -a "map" -d 'Show which task each CPU runs after each switch'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and not __fish_seen_subcommand_from record latency timehist map script" -f -a "script" -d 'Print the events one by one; options as for pmc script'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s e -l event -d 'Events to sample (repeatable) [default: cycles, as precise as possible]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l pfm-events -d 'Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l filter -d 'Filter expression for the tracepoints of the preceding -e' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s F -l freq -d 'Sample frequency in Hz, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s c -l count -d 'Sample every N events; `auto` uses the vendor\'s recommended period' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l call-graph -d 'Record call chains: auto[,BYTES] (stack copies and frame pointers), dwarf[,BYTES] (stack copies), fp (frame pointers), fp,defer (frame pointers, on return to user mode), lbr (branch records)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s C -l cpu -d 'Measure system-wide on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s p -l pid -d 'Measure these running processes, by pid or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s t -l tid -d 'Measure these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s u -l uid -d 'Measure all processes of this user (name or uid)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s G -l cgroup -d 'Record only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s o -l output -d 'Output file; `-` writes a stream to stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l timeout -l duration -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l unwind -d 'With dwarf and auto: live unwinds stacks while recording; deferred writes stack copies, as perf does, and unwinds them when the file is read' -r -f -a "live\t''
deferred\t''"
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s r -l realtime -d 'Real-time priority (SCHED_FIFO) of the recorder' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s S -l snapshot -d 'Keep the newest records in memory; write a file on SIGUSR2, on the --control command snapshot, and at the end; SIZE limits the trace data' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l switch-output -d 'Start a new file on SIGUSR2 (signal), at this size (100M), or after this time (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l switch-output-event -d 'Start a new file when one of these events occurs; the events themselves are not recorded' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l switch-max-files -d 'With --switch-output: keep only the newest N files' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l switch-exec -d 'With --switch-output: run this shell command for each finished file, which is "$1"' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l max-size -d 'Stop recording when the file reaches this size, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s z -l compression-level -d 'Compress the file with zstd at this level, 1 to 22' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l synth -d 'Synthesize records for running tasks: task, mmap (includes task), cgroup, all, or no' -r -f -a "no\t''
all\t''
task\t''
mmap\t''
cgroup\t''"
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l control -d 'Read commands (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s m -l mmap-pages -d 'Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two); AREA sizes the AUX buffer' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s D -l delay -d 'Delay before recording, in milliseconds or with a unit (2s); -1 waits for --control; 10-20,30-40 records only these ranges and then ends' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l off-cpu-thresh -d 'Sum up waits shorter than this, without their stacks, in milliseconds or with a unit [default: 0]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s j -l branch-filter -d 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s I -l intr-regs -d 'Record the registers at the interrupt: all, or a list; `?` prints the names' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l user-regs -d 'Record the user-space registers: all, or a list; `?` prints the names' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s k -l clockid -d 'Clock of the timestamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l aux-sample -d 'Attach the newest SIZE bytes of the trace to samples of events in its group [default: 4K]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l reserve -d 'Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l exclude-perf -d 'Do not record tracepoint events that pmc itself causes'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l strict-freq -d 'Fail if the kernel does not allow this frequency'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l strict -d 'Fail instead of falling back to another event or frequency'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s g -d 'Record call chains by frame pointers (-g dwarf is --call-graph dwarf)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l kernel-callchains -d 'Record only the kernel part of call chains'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l user-callchains -d 'Record only the user part of call chains'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s a -l all-cpus -d 'Measure system-wide, on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s i -l no-inherit -d 'Do not record child processes'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l per-thread -d 'Use one ring buffer per thread instead of per CPU; excludes child processes'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l no-join -d 'Do not complete truncated stacks from earlier samples of the thread (with --unwind live)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s B -l no-buildid -d 'Do not collect build-ids'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s N -l no-buildid-cache -d 'Do not copy the sampled files to the build-id cache (see pmc buildid-cache)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l buildid-all -d 'Record the build-ids of all mapped files, not only of files with samples'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l timestamp-filename -d 'Append the date and time to the file name'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l json -d 'Print a JSON summary to stdout when done'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l no-buffering -d 'Read each record immediately after it is written'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l off-cpu -d 'Also record where threads wait: off-CPU time, with the stack of each wait'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l wakers -d 'Record who wakes the waiting threads, and who runs while they wait for a CPU (requires --off-cpu or --wall)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l wall -d 'Record all of each thread\'s time, running and waiting; short for --off-cpu -e cpu-clock'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s n -l no-samples -d 'Record no samples, only mappings and processes'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s T -l timestamp -d 'Record the time of each sample (default)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s P -l period -d 'Record the period of each sample (default if it varies)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l no-period -d 'Do not record the period of samples'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s d -l data -d 'Record data addresses and data sources'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l sample-mem-info -d 'Record the data source of memory accesses'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l data-mmap -d 'Also record data mappings'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l phys-data -d 'Record physical addresses of data'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l data-page-size -d 'Record the page size of data addresses'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l code-page-size -d 'Record the page size of code addresses'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s W -l weight -d 'Record the cost of each sampled instruction, if the hardware reports it'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l transaction -d 'Record the flags of memory transactions'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s s -l stat -d 'Record each thread\'s counts when it ends'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l sample-cpu -d 'Record the CPU of each sample'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s R -l raw-samples -d 'Record raw data for all events that provide it'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s b -l branch-any -d 'Record taken branches'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l switch-events -d 'Record context switches'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l latency -d 'Record when each thread ran, so that report can show shares of wall-clock time'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l namespaces -d 'Record namespaces'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l all-cgroups -d 'Record cgroups'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l all-user -d 'Record in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l all-kernel -d 'Record in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l overwrite -d 'Keep the newest records in memory and write them at the end'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l backlog -d 'For persistent events, include the records that they already hold'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l buildid-mmap -d 'Same as -N: mappings carry build-ids by default if the kernel provides them'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l group -d 'Put all events into one group'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l running-time -d 'With recorded counts (:S), also record how long events were enabled and running'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l sample-identifier -d 'Start each sample with the event id, even with a single event'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l dry-run -d 'Open the events but do not record'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s s -l sort -d 'Sort by these keys, highest first: avg, max, switch, runtime, p99, pid' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s C -l cpu -d 'Include only delays that ended on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -l limit -d 'Maximum number of rows; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s p -l pids -d 'Show each task instead of each name'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s j -l json -d 'Print a JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s f -l force -d 'No effect: pmc reads recordings of any owner'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s v -l verbose -d 'No effect: damage and losses are always reported'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s D -l dump-raw-trace -d 'Not supported: pmc script -D dumps all records'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from latency" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l max-stack -d 'Maximum number of functions in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s p -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s t -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s C -l cpu -d 'Include only these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l prio -d 'Include only tasks with these kernel priorities, such as 0-99,120' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l limit -d 'Maximum number of lines; with --json, also of tasks in the totals; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s w -l wakeups -d 'Show wake-ups'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s M -l migrations -d 'Show migrations'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s n -l next -d 'Show the next task'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s V -l cpu-visual -d 'Mark the CPU of each line in a column per CPU'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s g -l call-graph -d 'Show call chains, if recorded (default)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s G -l no-call-graph -d 'Do not show call chains'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l state -d 'Show the state in which each task left its CPU'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s P -l pre-migrations -d 'Show the time between waking and migration'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l show-prio -d 'Show priorities'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l blame -d 'Show which tasks ran on the CPU during each delay'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s s -l summary -d 'Show only each task\'s totals'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s S -l with-summary -d 'Show all lines, then each task\'s totals'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s I -l idle-hist -d 'Show only the times when a CPU was idle'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s j -l json -d 'Print one JSON object per line'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s f -l force -d 'No effect: pmc reads recordings of any owner'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s v -l verbose -d 'No effect: damage and losses are always reported'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s D -l dump-raw-trace -d 'Not supported: pmc script -D dumps all records'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from timehist" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l cpus -d 'Show only switches on these CPUs' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l color-cpus -d 'Highlight these CPUs' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l color-pids -d 'Highlight these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l task-name -d 'Show only switches of tasks with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l compact -d 'Show a column only for CPUs that have switched'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l fuzzy-name -d 'Match parts of names'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -s f -l force -d 'No effect: pmc reads recordings of any owner'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -s v -l verbose -d 'No effect: damage and losses are always reported'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -s D -l dump-raw-trace -d 'Not supported: pmc script -D dumps all records'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from map" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s F -l fields -d 'Fields to print; +NAME and -NAME change the default; a prefix hw:, sw:, trace: or raw: selects the event type' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l stop-bt -d 'Stop call chains after these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s S -l symbols -d 'Print only samples in these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l dsos -d 'Print only samples in these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l max-stack -d 'Maximum number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l max-blocks -d 'Maximum number of code blocks between branches to print, for the brstackinsn fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l limit -d 'Maximum number of samples and records to print; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s G -l hide-call-graph -d 'Do not print call chains'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l stitch-lbr -d 'Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l ns -d 'Show times in nanoseconds'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l reltime -d 'Print times relative to the first line'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l deltatime -d 'Print times relative to the previous line'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-task-events -d 'Also print forks, exits and name changes'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-mmap-events -d 'Also print mappings'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-switch-events -d 'Also print context switches, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-lost-events -d 'Also print lost records'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-namespace-events -d 'Also print namespaces, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-cgroup-events -d 'Also print cgroups, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-bpf-events -d 'Also print BPF program loads and unloads, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-text-poke-events -d 'Also print changes of kernel code, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l show-round-events -d 'Also print the records that end each of the recorder\'s rounds'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s D -l dump-raw-trace -d 'Also dump all records, as bytes and fields'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l dump-unsorted-raw-trace -d 'Same as -D, but in file order instead of time order'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s I -l header -d 'Print the recording\'s header first'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l header-only -d 'Print only the recording\'s header'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l inline -d 'Show inlined functions (default with stack copies, as in perf)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-inline -d 'Do not look for inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l full-source-path -d 'Show full paths of source files'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l per-event-dump -d 'Write each event\'s lines to a separate file next to the recording: FILE.EVENT.dump'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s j -l json -d 'Print one JSON object per line'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand sched; and __fish_seen_subcommand_from script" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l format -l type -d 'Format: html, svg, folded, firefox, perfetto, speedscope, pprof, otlp, callgrind, gmon (a directory, for gprof), parquet (two tables), json or csv [default: from the file name]' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s o -l output -d 'File to write (gmon: directory, parquet: start of two names); its extension selects the format; `-` is stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s e -l event -d 'Export only this event [default: all if the format supports several, else the first]' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l diff -d 'Show the difference from this recording (svg)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l max-stack -d 'Maximum number of frames in a call chain; outer frames beyond this are dropped' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s d -l dsos -d 'Include only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s S -l symbols -d 'Include only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l symbol-filter -d 'Include only functions whose names contain this' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l state -d 'Include only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting (both)' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s p -l parent -d 'Also sort by the innermost caller that matches this pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l ignore-callees -d 'Attribute the cost of callees to these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l socket-filter -d 'Include only samples on the CPUs of this socket' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l label -d 'Label for the column `labels` (parquet); may be repeated' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l bucket -d 'Add up samples in buckets of this length, or `none` to keep each one (parquet) [default: 60s]' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l push -d 'Send the export to a server instead of a file: otlp=URL (default), pyroscope=URL or parca=URL. If the server refuses it, pmc keeps it in OUT' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l push-headers -d 'File with HTTP headers for the server, such as `Authorization: Bearer TOKEN` [default: the environment variable PMC_PUSH_HEADERS]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -l service -d 'Name of the recorded service (otlp, parquet, --push)' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l service-version -d 'Version of the service (otlp, parquet, --push)' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l host -d 'Name of the recorded host (otlp, parquet, --push) [default: the recorded name]' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l stitch-lbr -d 'Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s U -l hide-unresolved -d 'Include only functions with known names'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s x -l exclude-other -d 'Include only samples with a caller that matches --parent'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l inline -d 'Show inlined functions and source lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-inline -d 'Do not look for inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s q -l quiet -d 'Print no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-symbols -d 'Do not look up functions of programs and libraries; see pmc symbolize (parquet)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l aggregate -d 'Export sums of periods instead of the time of each sample (otlp)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s o -l output -d 'File to write (gmon: directory, parquet: start of two names); its extension selects the format; `-` is stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s e -l event -d 'Export only this event [default: all if the format supports several, else the first]' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l diff -d 'Show the difference from this recording (svg)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s c -l comms -d 'Include only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l pid -d 'Include only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l tid -d 'Include only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s C -l cpu -d 'Include only samples on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l time -d 'Include only this time range: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l max-stack -d 'Maximum number of frames in a call chain; outer frames beyond this are dropped' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s d -l dsos -d 'Include only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s S -l symbols -d 'Include only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l symbol-filter -d 'Include only functions whose names contain this' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l state -d 'Include only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting (both)' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s p -l parent -d 'Also sort by the innermost caller that matches this pattern' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l ignore-callees -d 'Attribute the cost of callees to these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l socket-filter -d 'Include only samples on the CPUs of this socket' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l idle -d 'Include the waiting time of idle threads, such as the workers of a pool'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-join -d 'Do not complete truncated stacks from other samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l stitch-lbr -d 'Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s U -l hide-unresolved -d 'Include only functions with known names'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s x -l exclude-other -d 'Include only samples with a caller that matches --parent'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l inline -d 'Show inlined functions and source lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-inline -d 'Do not look for inlined functions'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l demangle -d 'Demangle symbol names (default)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-demangle -d 'Show mangled symbol names'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s q -l quiet -d 'Print no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -s o -l output -d 'File to write instead of replacing the table' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -l symfs -d 'Root directory of the recorded machine, for programs' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand symbolize" -s q -l quiet -d 'Print no messages except errors'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s v -l verbose -d 'Show every field of each event\'s perf_event_attr'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s F -l freq -d 'Show the sample frequency or period'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s g -l group -d 'Show groups in braces'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -l trace-fields -d 'Show tracepoint fields'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s H -l with-hits -d 'List only files with samples'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s k -l kernel -d 'Print the running kernel\'s build-id'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s m -l kernel-maps -d 'List the running kernel and its modules with build-ids and addresses'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s o -l output -d 'Output file; `-` is stdout. An existing file is renamed to FILE.old' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l known-build-ids -d 'Use these build-ids for the files at these paths; file://LIST reads one pair per line' -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l symfs -d 'Look up the recorded files below this directory' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s b -l build-ids -d 'Insert the build-ids of files with samples'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l buildid-all -d 'Insert the build-ids of all mapped files'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s B -l mmap2-buildids -d 'Drop mappings of files without samples, and identify the other files by build-id'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l mmap2-buildid-all -d 'Identify the files of all mappings by build-id'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s j -l jit -d 'Write the code in jitdumps to ELF files, and add mappings for them'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l convert-callchain -d 'Replace stack copies (record --call-graph dwarf) with call chains'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l aslr -d 'Replace all addresses, so that the recording does not reveal where the kernel placed code and data'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -f -a "convert" -d 'Convert the samples to another format'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s i -l input -d 'Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l to-json -d 'Write one JSON document; `-` is stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l to-ctf -d 'Not supported: pmc does not write CTF' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l time -d 'Include only samples from FROM to TO, in seconds or percent of the recording' -r
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l tod -d 'Write wall-clock times, in nanoseconds since 1970 (not for recordings of perf without -k)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l all -d 'Not supported: the document contains only samples'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s f -l force -d 'Overwrite an existing file'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s v -l verbose -d 'No effect: damage in a recording is always reported'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s a -l add -d 'Add these files' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s r -l remove -d 'Remove the entries with the build-ids of these files' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s p -l purge -d 'Remove all builds cached under these paths' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s u -l update -d 'Update the cached copies of these files' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s M -l missing -d 'List the build-ids of this recording that are not in the cache' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l target-ns -d 'With -a and -u: look up the files in the mount namespace of this process' -r
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l debuginfod -d 'With -a and -u: also fetch debug information from DEBUGINFOD_URLS and cache it' -r
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s P -l purge-all -d 'Remove everything'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s l -l list -d 'List the cache'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s v -l verbose -d 'Print the action taken for each file'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -s o -l output -d 'Output file [default: FILE.archive]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l symfs -d 'Root directory of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l kallsyms -d 'Copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -s k -l vmlinux -d 'Recorded kernel\'s image with symbols (vmlinux)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l debuginfod -d 'debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l exclude-buildids -d 'Exclude the build-ids listed in this file, one per line' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l no-code -d 'Include neither machine code nor source lines'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l with-source -d 'Include whole source files instead of the lines around the sampled code'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l with-debug -d 'Include the code of callers, and the names of all variables in programs and libraries with samples'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l anonymous -d 'Hide the names of the host, commands, threads, cgroups and folders, replace all addresses, and leave out code, registers and raw data'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l no-cache -d 'Do not cache symbol lookups for later runs'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l no-debuginfod -d 'Use neither debuginfod servers nor files fetched from them earlier'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l perf -d 'Pack the files with the recording\'s symbols in perf\'s format'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l all -d 'With --perf: also pack the recording'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l unpack -d 'With --perf: unpack an archive into the build-id cache'
complete -c pmc -n "__fish_pmc_using_subcommand kallsyms" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand kallsyms" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand config" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand config" -s l -l list -d 'Show all settings'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l system -d 'Use only /etc/perfconfig'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l user -d 'Use only ~/.perfconfig'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l unit -d 'List only events of this PMU' -r
complete -c pmc -n "__fish_pmc_using_subcommand list" -l import -d 'Import events and metrics from a copy of Intel\'s perfmon repository, Arm\'s data or the kernel\'s pmu-events' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand list" -s o -l output -d 'Write the list to this file' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand list" -l limit -d 'Maximum number of events; 0 prints all [default: all]' -r
complete -c pmc -n "__fish_pmc_using_subcommand list" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s l -l long -d 'Show attr fields, aliases, units, tracepoint fields and metric formulas'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s d -l desc -d 'Show descriptions (default; --no-desc shows only names)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l no-desc -d 'Do not show descriptions'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l deprecated -d 'Include deprecated events'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s j -l json -d 'Print one JSON document (`version` changes when the meaning of a field changes)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l raw-dump -d 'Print the names of usable events on one line, as perf does for shell completion'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l limit -d 'Maximum number of the recording\'s events, of IDs per event, and of build-ids; 0 shows all' -r
complete -c pmc -n "__fish_pmc_using_subcommand info" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand info" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l header -d 'Show only the recording\'s header, like perf report --header-only'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l counters -d 'Show only the counters: their number, class and width, how many are free, and which processes use them'
complete -c pmc -n "__fish_pmc_using_subcommand info" -s j -l json -d 'Print one JSON document (`version` changes when the meaning of a field changes)'
complete -c pmc -n "__fish_pmc_using_subcommand mcp" -l max-seconds -d 'With --allow-record: maximum duration of a recording or comparison, in seconds' -r
complete -c pmc -n "__fish_pmc_using_subcommand mcp" -l max-size -d 'With --allow-record: maximum size of a recording, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand mcp" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand mcp" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand mcp" -l allow-record -d 'Allow the tools record and stat_compare, which run commands as this user'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "add" -d 'Open an event and keep it running until it is removed'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "list" -d 'List the held events, and those lost when a holder ended'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "show" -d 'Show the details of an entry, including its perf_event_attr'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "read" -d 'Show the counts of an entry since it was added'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "snapshot" -d 'Write the current records of an entry to a file for report, script and perf'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "rename" -d 'Rename an entry; its id does not change'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "adopt" -d 'Take over the events of a running `pmc record` or `pmc stat`, which then exits'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "rm" -d 'Close entries, or remove lost ones from the list'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "hold" -d 'Run the holder in the foreground, as a service'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "attach" -d 'Take over an entry: record its held records and all later ones, until the recording ends'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s e -l event -d 'Event with modifiers and qualifiers, as for record' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l pages -d 'Pages per ring buffer [default: 512 KiB]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s C -l cpu -d 'Measure on these CPUs [default: all online CPUs]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s p -l pid -d 'Measure these running processes, with all threads and new children' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l call-graph -d 'Sample call chains by frame pointers' -r -f -a "fp\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l filter -d 'Filter expression for the tracepoint' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l share -d 'What other users may read' -r -f -a "nothing\t''
counts\t''
records\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l overwrite -d 'Keep the newest records when a ring buffer is full; every snapshot contains all of them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l normal -d 'Keep the oldest records when a ring buffer is full; a snapshot removes them'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l json -d 'Print the new entry as a JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -s o -l output -d 'Output file; `-` is stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rename" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rename" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -l from -d 'Process id of a `pmc record` or `pmc stat`' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rm" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -l until-empty -d 'Detach from the terminal, and end when no entry is left (used by `add`)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s o -l output -d 'Output file; `-` writes a stream to stdout' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l timeout -l duration -d 'Stop recording after this time, in milliseconds or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l unwind -d 'With dwarf and auto: live unwinds stacks while recording; deferred writes stack copies, as perf does, and unwinds them when the file is read' -r -f -a "live\t''
deferred\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s r -l realtime -d 'Real-time priority (SCHED_FIFO) of the recorder' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s S -l snapshot -d 'Keep the newest records in memory; write a file on SIGUSR2, on the --control command snapshot, and at the end; SIZE limits the trace data' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-output -d 'Start a new file on SIGUSR2 (signal), at this size (100M), or after this time (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-output-event -d 'Start a new file when one of these events occurs; the events themselves are not recorded' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-max-files -d 'With --switch-output: keep only the newest N files' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-exec -d 'With --switch-output: run this shell command for each finished file, which is "$1"' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l max-size -d 'Stop recording when the file reaches this size, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s z -l compression-level -d 'Compress the file with zstd at this level, 1 to 22' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l synth -d 'Synthesize records for running tasks: task, mmap (includes task), cgroup, all, or no' -r -f -a "no\t''
all\t''
task\t''
mmap\t''
cgroup\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l control -d 'Read commands (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l no-join -d 'Do not complete truncated stacks from earlier samples of the thread (with --unwind live)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s B -l no-buildid -d 'Do not collect build-ids'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s N -l no-buildid-cache -d 'Do not copy the sampled files to the build-id cache (see pmc buildid-cache)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l buildid-all -d 'Record the build-ids of all mapped files, not only of files with samples'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l timestamp-filename -d 'Append the date and time to the file name'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s v -l verbose -d 'Print details about the opened events'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l json -d 'Print a JSON summary to stdout when done'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s q -l quiet -d 'Print only errors and losses'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand start" -l profile -d 'Also sample this event and keep the newest samples [default: cycles, or cpu-clock without hardware counters]' -r
complete -c pmc -n "__fish_pmc_using_subcommand start" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand start" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s o -l output -d 'Output file for the samples of --profile' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stop" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s f -d 'Lock file to use instead of PCP\'s' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s D -d 'Stay in the foreground (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s d -d 'Go to the background once the lock is held; errors are reported before that'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l create -d 'Create the lock file if it is missing, for an agent that starts later (PCP\'s directory requires root)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l json -d 'Print a JSON object to stdout once the lock is held: file, holder, other holders, agents'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s v -l version -d 'Print the version'
complete -c pmc -n "__fish_pmc_using_subcommand version" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand version" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand version" -s v -l build-options -d 'Also show the features of this build'
complete -c pmc -n "__fish_pmc_using_subcommand help" -l no-pager -d 'Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand help" -s h -l help -d 'Print help'

# --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---

# The value under the cursor, without its option.
function __pmc_value
    string replace -r -- '^(--[^=]*=|-[a-zA-Z](?=.))' '' (commandline -ct) | string trim -c '"\''
end

# The candidates for an event list: each is the list so far with its last item completed.
function __pmc_events
    set -l list (__pmc_value)
    # A pmu/terms/ that is closed is behind us.
    set -l head (string match -r -- '^(?:[^/]*/[^/]*/)*' "$list")
    set list (string replace -- "$head" '' "$list")
    set -l devices /sys/bus/event_source/devices
    if string match -q -- '*/*' "$list"
        set -l pmu (string replace -r -- '/.*' '' "$list" | string replace -r -- '.*[,{]' '')
        set head "$head"(string match -r -- '.*[/,]' "$list")
        for name in $devices/$pmu/events/*
            string match -qr -- '\.(unit|scale|snapshot|per-pkg)$' $name
            or printf '%s%s\n' "$head" (string replace -r -- '.*/' '' $name)
        end
        for name in $devices/$pmu/format/*
            printf '%s%s=\n' "$head" (string replace -r -- '.*/' '' $name)
        end
    else
        set head "$head"(string match -r -- '^(?:.*[,{])?' "$list")
        printf '%s\n' "$head"(string replace -r -- '.*/' '' $devices/*)/
        set -l pmc (commandline -o)[1]
        printf '%s\n' "$head"(command $pmc list --names 2>/dev/null)
    end
end

# The candidates for a list of metrics and of groups of them.
function __pmc_metrics
    set -l head (string match -r -- '^(?:.*,)?' (__pmc_value))
    set -l pmc (commandline -o)[1]
    printf '%s\n' "$head"(command $pmc list --names metric 2>/dev/null)
end

# The candidates for a comma-separated list: what stands in these folders of /proc, each with its name.
function __pmc_numbers
    set -l head (string match -r -- '^(?:.*,)?' (__pmc_value))
    for folder in (string match -r -- '.*/[0-9]+$' $argv)
        set -l name
        test -r $folder/comm
        and read name <$folder/comm
        and printf '%s%s\t%s\n' "$head" (string replace -r -- '.*/' '' $folder) "$name"
    end
end

# The candidates for what stands behind `--`, as if it stood alone.
function __pmc_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    or return
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c pmc -n 'contains -- -- (commandline -opc)' -f -a '(__pmc_command)'

complete -c pmc -n "__fish_pmc_using_subcommand profile" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand compare" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand latency" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand trace" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
