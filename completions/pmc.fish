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

complete -c pmc -n "__fish_pmc_needs_command" -l buildid-dir -d 'Where files of recordings are kept by build-id [default: $PERF_BUILDID_DIR, else ~/.debug]' -r -F
complete -c pmc -n "__fish_pmc_needs_command" -s p -l paginate -d 'Show long text through the pager, whatever the setting `pager.COMMAND` says'
complete -c pmc -n "__fish_pmc_needs_command" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_needs_command" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_needs_command" -s V -l version -d 'Print version'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "profile" -d 'Record a command, or what runs, and show where the time went'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat" -d 'Count events'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat-record" -d 'Count events into a file (`pmc stat record`)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stat-report" -d 'Show the counts of such a file (`pmc stat report`)'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "record" -d 'Sample where time goes, into a file'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "report" -d 'Show where the time went in a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "top" -d 'Show where time goes right now'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "annotate" -d 'Show what each instruction and source line of a function cost'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "diff" -d 'Compare recordings, and tell differences from noise'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "script" -d 'Print the samples of a recording one by one'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "export" -d 'Write a recording in a form that other programs and people read'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "flamegraph" -d 'Draw a flame graph of a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "evlist" -d 'List the events of a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "buildid-list" -d 'List the build-ids of the files in a recording'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "inject" -d 'Write a recording anew: with build-ids, generated code as files, unwound, unpacked'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "data" -d 'Turn a recording into another format'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "buildid-cache" -d 'Keep the files of recordings by build-id, list and remove what is kept'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "archive" -d 'Pack up the files that a recording\'s names come from'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "kallsyms" -d 'Show where symbols of the running kernel lie'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "config" -d 'Show and change perf\'s settings, as far as pmc heeds them'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "list" -d 'List the events that can be counted here, each tried'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "info" -d 'Show what this machine can measure, who holds its counters, and what this user may do'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "persist" -d 'Keep events running with nobody looking, for whoever comes later'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "start" -d 'Count on all CPUs with nobody looking, until `pmc stop`'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "stop" -d 'Show what `pmc start` has counted, and end it'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "reserve" -d 'Reserve the hardware counters'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "version" -d 'Show the version'
complete -c pmc -n "__fish_pmc_needs_command" -f -a "help" -d 'Show the commands, or the options of one'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s p -l pid -d 'Profile these running processes, by number or name' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l duration -l timeout -d 'End after this time: milliseconds, or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s F -l freq -d 'Samples a second, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s e -l event -d 'Event to sample; the default is cycles, or time where there are none' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l call-graph -d 'Where call chains come from: auto, fp, dwarf or lbr; with the bytes of each stack that are copied' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s o -l output -d 'The recording, which pmc report and perf report read' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l html -d 'Write the answer into this page for any browser, which can be sent to whoever asks' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l format -d 'Write the answer in this format (svg, folded, firefox, speedscope, pprof, callgrind, …: pmc export) beside the recording' -r
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l theme -d 'Colours for a dark or a light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s a -l all-cpus -d 'Profile everything on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l stdio -d 'Print plain text, on a terminal too'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -l no-runtime-env -d 'Leave the command\'s environment alone: runtimes (Python, Node.js, the JVM, .NET) are not asked for the names of the code that they generate'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s q -l quiet -d 'Say nothing but errors'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s e -l event -d 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pfm-events -d 'Events by libpfm4\'s names, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l perfevent-conf -d 'Count the events of this configuration of PCP\'s agent pmdaperfevent (perfevent.conf)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l filter -d 'Count only what this expression holds for, of the tracepoints of the -e before it' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l cputype -d 'On machines with several kinds of cores: count only on those of this kind, such as core or atom' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pmu-filter -d 'Of events that several PMUs of a kind have, count only this PMU\'s' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s p -l pid -d 'Count in these running processes, by number or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s t -l tid -d 'Count in these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s u -l uid -d 'Count in all processes of this user (name or number)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s C -l cpu -d 'Count everything on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s G -l cgroup -d 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l for-each-cgroup -d 'Count every event in each of these cgroups' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s r -l repeat -d 'Run the command N times and show mean and spread; 0: for ever' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l warmup -d 'With -r or --vs: run the command N times without counting first' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l pre -l prepare -d 'Run this shell command before each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l post -d 'Run this shell command after each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s I -l interval-print -d 'Print what was counted in each interval: milliseconds, or with a unit (1s)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l interval-count -d 'With -I: end after this many intervals' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l timeout -l duration -d 'End counting after this time: milliseconds, or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s D -l delay -d 'Start counting this long after the start: milliseconds, or with a unit (2s); -1: only when --control says so' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l vs -d 'Compare commands, run alternately (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l listen -d 'Serve OpenMetrics over HTTP at this address (with -I)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l control -d 'Take commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l reserve -d 'What to do about a hardware reservation: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s o -l output -d 'Write to this file instead of stderr' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-cache -d 'A row for each cache of this level (L2), or of the last' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s x -l field-separator -d 'Print CSV with this separator, with perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s j -l json -d 'Print JSON: lines with perf\'s fields (1), or one document with real numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s M -l metrics -d 'Metrics by name or group, with the events that they need: IPC, GHz, TopdownL1, tma_memory_bound … (pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric -d 'A metric of your own: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l td-level -d 'How many levels of --topdown are measured; each asks the counters for more [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l openmetrics -d 'Keep an OpenMetrics scrape file current (with -I); without a file, print the result in that form' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l tpebs-mode -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l iostat -r
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-group -d 'Count the events of a metric one by one, not as a group'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-merge -d 'Count for each metric all of its events, whatever others count'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s i -l no-inherit -d 'Do not count children that the command or the processes start'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l children -d 'Show apart what the command (or the processes) counted, what the processes that it started did, and the sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l user-kernel -d 'Show apart what was counted in user mode and in the kernel'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s a -l all-cpus -d 'Count everything on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l all-user -d 'Count in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l all-kernel -d 'Count in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s d -l detailed -d 'More events: caches; -dd and -ddd for more'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s S -l sync -d 'Have the kernel write everything to disk before each run, as sync(1) does'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l table -d 'With -r: show every run\'s time as a table'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s n -l null -d 'Count nothing, measure only the time'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l interval-clear -d 'With -I: clear the screen before each interval'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l exact -d 'Never scale: where the events do not fit on the counters, split them over several runs'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l show-output -d 'Show what the commands write in every run of -r, --vs and --exact, not only in the first'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-exit -d 'Record what each thread has counted when it ends (into perf.data, or with `stat record` into -o FILE)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l log-cswitch -d 'Record what each thread counts from one context switch to the next, and until it ends'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l append -d 'With -o: append to the file'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s A -l no-aggr -d 'A row for each CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-thread -d 'A row for each thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-core -d 'A row for each core'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-cluster -d 'A row for each cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-die -d 'A row for each die'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-socket -d 'A row for each socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l per-node -d 'A row for each NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s v -l verbose -d 'Say more: what was opened, counts before scaling'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s q -l quiet -d 'Print no counts of the command\'s run, only what -I, --vs or a file gets'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s B -l big-num -d 'Group the digits of large numbers, in locales that do (the default; --no-big-num for none)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l scale -d 'Scale counts that shared a counter to the whole time (the default; --no-scale for raw counts)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l summary -d 'With -I: print the totals at the end too'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-csv-summary -d 'Do not put `summary` before the totals\' CSV lines'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l no-merge -d 'A row for each instance of a PMU instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-only -d 'Only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l topdown -d 'Where the pipeline\'s slots go: the tree of the top-down method, to --td-level'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l metric-no-threshold -d 'Count no events for the thresholds of metrics alone'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l affinity
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l hybrid-merge
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l record-tpebs
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l percore-show-thread
complete -c pmc -n "__fish_pmc_using_subcommand stat" -l smi-cost
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s T -l transaction
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s e -l event -d 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pfm-events -d 'Events by libpfm4\'s names, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l perfevent-conf -d 'Count the events of this configuration of PCP\'s agent pmdaperfevent (perfevent.conf)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l filter -d 'Count only what this expression holds for, of the tracepoints of the -e before it' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l cputype -d 'On machines with several kinds of cores: count only on those of this kind, such as core or atom' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pmu-filter -d 'Of events that several PMUs of a kind have, count only this PMU\'s' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s p -l pid -d 'Count in these running processes, by number or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s t -l tid -d 'Count in these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s u -l uid -d 'Count in all processes of this user (name or number)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s C -l cpu -d 'Count everything on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s G -l cgroup -d 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l for-each-cgroup -d 'Count every event in each of these cgroups' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s r -l repeat -d 'Run the command N times and show mean and spread; 0: for ever' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l warmup -d 'With -r or --vs: run the command N times without counting first' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l pre -l prepare -d 'Run this shell command before each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l post -d 'Run this shell command after each run' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s I -l interval-print -d 'Print what was counted in each interval: milliseconds, or with a unit (1s)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l interval-count -d 'With -I: end after this many intervals' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l timeout -l duration -d 'End counting after this time: milliseconds, or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s D -l delay -d 'Start counting this long after the start: milliseconds, or with a unit (2s); -1: only when --control says so' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l vs -d 'Compare commands, run alternately (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l listen -d 'Serve OpenMetrics over HTTP at this address (with -I)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l control -d 'Take commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l reserve -d 'What to do about a hardware reservation: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s o -l output -d 'Write the counts into this file; `-` is standard output' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-cache -d 'A row for each cache of this level (L2), or of the last' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s x -l field-separator -d 'Print CSV with this separator, with perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s j -l json -d 'Print JSON: lines with perf\'s fields (1), or one document with real numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s M -l metrics -d 'Metrics by name or group, with the events that they need: IPC, GHz, TopdownL1, tma_memory_bound … (pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric -d 'A metric of your own: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l td-level -d 'How many levels of --topdown are measured; each asks the counters for more [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l openmetrics -d 'Keep an OpenMetrics scrape file current (with -I); without a file, print the result in that form' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l tpebs-mode -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l iostat -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-group -d 'Count the events of a metric one by one, not as a group'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-merge -d 'Count for each metric all of its events, whatever others count'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s i -l no-inherit -d 'Do not count children that the command or the processes start'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l children -d 'Show apart what the command (or the processes) counted, what the processes that it started did, and the sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l user-kernel -d 'Show apart what was counted in user mode and in the kernel'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s a -l all-cpus -d 'Count everything on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l all-user -d 'Count in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l all-kernel -d 'Count in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s d -l detailed -d 'More events: caches; -dd and -ddd for more'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s S -l sync -d 'Have the kernel write everything to disk before each run, as sync(1) does'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l table -d 'With -r: show every run\'s time as a table'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s n -l null -d 'Count nothing, measure only the time'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l interval-clear -d 'With -I: clear the screen before each interval'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l exact -d 'Never scale: where the events do not fit on the counters, split them over several runs'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l show-output -d 'Show what the commands write in every run of -r, --vs and --exact, not only in the first'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-exit -d 'Record what each thread has counted when it ends (into perf.data, or with `stat record` into -o FILE)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l log-cswitch -d 'Record what each thread counts from one context switch to the next, and until it ends'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s A -l no-aggr -d 'A row for each CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-thread -d 'A row for each thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-core -d 'A row for each core'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-cluster -d 'A row for each cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-die -d 'A row for each die'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-socket -d 'A row for each socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l per-node -d 'A row for each NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s v -l verbose -d 'Say more: what was opened, counts before scaling'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s q -l quiet -d 'Print no counts of the command\'s run, only what -I, --vs or a file gets'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s B -l big-num -d 'Group the digits of large numbers, in locales that do (the default; --no-big-num for none)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l scale -d 'Scale counts that shared a counter to the whole time (the default; --no-scale for raw counts)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l summary -d 'With -I: print the totals at the end too'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-csv-summary -d 'Do not put `summary` before the totals\' CSV lines'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l no-merge -d 'A row for each instance of a PMU instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-only -d 'Only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l topdown -d 'Where the pipeline\'s slots go: the tree of the top-down method, to --td-level'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l metric-no-threshold -d 'Count no events for the thresholds of metrics alone'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l affinity
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l hybrid-merge
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l record-tpebs
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l percore-show-thread
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l smi-cost
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s T -l transaction
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -l append
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s i -l input -d 'The same' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s o -l output -d 'Write to this file instead of stderr' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-cache -d 'A row for each cache of this level (L2), or of the last' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s x -l field-separator -d 'Print CSV with this separator, with perf\'s fields' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s j -l json -d 'Print JSON: lines with perf\'s fields (1), or one document with real numbers (2)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-fd -d 'Write to this open descriptor instead of stderr' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s M -l metrics -d 'Metrics by name or group, with the events that they need: IPC, GHz, TopdownL1, tma_memory_bound … (pmc list metric)' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric -d 'A metric of your own: \'name=expression over events\'' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l td-level -d 'How many levels of --topdown are measured; each asks the counters for more [default: 1]' -r
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l openmetrics -d 'Keep an OpenMetrics scrape file current (with -I); without a file, print the result in that form' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l append -d 'With -o: append to the file'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-exit -d 'Show what each thread had counted when it ended (recorded by stat --log-exit or record -s)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l log-cswitch -d 'Show what each thread counted from one context switch to the next (recorded by stat --log-cswitch)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s A -l no-aggr -d 'A row for each CPU instead of the sum (with -a or -C)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-thread -d 'A row for each thread'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-core -d 'A row for each core'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-cluster -d 'A row for each cluster of cores'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-die -d 'A row for each die'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-socket -d 'A row for each socket'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l per-node -d 'A row for each NUMA node'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s v -l verbose -d 'Say more: what was opened, counts before scaling'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s q -l quiet -d 'Print no counts of the command\'s run, only what -I, --vs or a file gets'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s B -l big-num -d 'Group the digits of large numbers, in locales that do (the default; --no-big-num for none)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-big-num -d 'Do not group digits'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l scale -d 'Scale counts that shared a counter to the whole time (the default; --no-scale for raw counts)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s c -l no-scale -d 'Show raw counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l summary -d 'With -I: print the totals at the end too'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-csv-summary -d 'Do not put `summary` before the totals\' CSV lines'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l no-merge -d 'A row for each instance of a PMU instead of their sum'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric-only -d 'Only metrics, no counts'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l topdown -d 'Where the pipeline\'s slots go: the tree of the top-down method, to --td-level'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -l metric-no-threshold -d 'Count no events for the thresholds of metrics alone'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s e -l event -d 'Events to sample (repeatable); the default is cycles, as precise as the machine can' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l pfm-events -d 'Events by libpfm4\'s names, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l filter -d 'Keep only the records for which this expression holds, of the tracepoints of the -e before it' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s F -l freq -d 'Samples a second, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s c -l count -d 'Take a sample after so many occurrences; `auto`: as many as the event\'s maker recommends' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l call-graph -d 'Record call chains: auto[,BYTES] (copies of the stack, and frame pointers), dwarf[,BYTES] (copies of the stack), fp (frame pointers; fp,defer: when the thread returns to user mode), lbr (branch records)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l max-stack -d 'Greatest number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s C -l cpu -d 'Record everything on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s p -l pid -d 'Record these running processes, by number or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s t -l tid -d 'Record these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s u -l uid -d 'Record all processes of this user (name or number)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s G -l cgroup -d 'Record only in this cgroup; a list goes with the events in order (needs -a or -C)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s o -l output -d 'Write to this file; `-`: to standard output, as a stream' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand record" -l timeout -l duration -d 'End recording after this time: milliseconds, or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l unwind -d 'With dwarf and auto: live makes call chains of the copies at once; deferred writes the copies, as perf does, to be unwound when the file is read' -r -f -a "live\t''
deferred\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -s r -l realtime -d 'Record with this real-time priority (SCHED_FIFO)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s S -l snapshot -d 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end; of a trace, so many bytes' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-output -d 'Start another file: at SIGUSR2 (signal), when it is so large (100M), or after a time (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-output-event -d 'Start another file when one of these events happens, which are not recorded themselves' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-max-files -d 'With --switch-output: keep only the newest N files' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l max-size -d 'End the recording when the file is so large, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s z -l compression-level -d 'Compress (zstd, level 1 to 22)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l synth -d 'What is told of those who run already: task, mmap (and task), cgroup, all, no' -r -f -a "no\t''
all\t''
task\t''
mmap\t''
cgroup\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -l control -d 'Take orders (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s m -l mmap-pages -d 'Size of a ring: pages, or bytes with B, K, M or G (a power of two); AREA: of what a trace goes into' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s D -l delay -d 'Start recording this long after the start: milliseconds, or with a unit (2s); -1: only when --control says so; 10-20,30-40: only in these ranges of time, after which it ends' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s j -l branch-filter -d 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s I -l intr-regs -d 'Record the registers at the interrupt: all, or those of a list; `?` lists them' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l user-regs -d 'Record the registers of the process: all, or those of a list; `?` lists them' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -s k -l clockid -d 'The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l aux-sample -d 'Samples of events whose group a trace leads carry the newest bytes of it (4K where not said)' -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l reserve -d 'What to do about a hardware reservation: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand record" -l threads -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l aio -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l affinity -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l mmap-flush -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l num-thread-synthesize -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l proc-map-timeout -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l vmlinux -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l debuginfod -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l off-cpu-thresh -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l setup-filter -r
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l exclude-perf -d 'Leave out, of tracepoints, what pmc itself does'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l strict-freq -d 'Fail when the kernel does not allow that many samples a second'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l strict -d 'Fail rather than measure something else: no cpu-clock where there are no cycles, no lower frequency'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s g -d 'Record call chains (by frame pointers; -g dwarf is --call-graph dwarf)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l kernel-callchains -d 'The kernel\'s part of call chains only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l user-callchains -d 'The user part of call chains only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s a -l all-cpus -d 'Record everything on all CPUs'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s i -l no-inherit -d 'Do not record children that the command or the processes start'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l per-thread -d 'One ring for each thread instead of one for each CPU; no children'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-join -d 'With live, leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s B -l no-buildid -d 'Do not look for the build-ids of files'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s N -l no-buildid-cache -d 'Do not keep the files that samples lie in (see pmc buildid-cache)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l buildid-all -d 'Build-ids of all mapped files, not only of those with samples'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l timestamp-filename -d 'Put date and time behind the file\'s name'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s v -l verbose -d 'Say more: what was opened, and how'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l json -d 'In the end print on standard output what the recording came to, as a JSON object'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s q -l quiet -d 'Say nothing but errors'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-buffering -d 'Take each record out of its ring at once'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s n -l no-samples -d 'Record no samples, only what is mapped and started'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s T -l timestamp -d 'Record the time of each sample (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s P -l period -d 'Record the period of each sample (the default where it varies)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-period -d 'Do not record the period of samples'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s d -l data -d 'Record data addresses and where data came from'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-mem-info -d 'Record where the data of memory accesses came from'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l data-mmap -d 'Record mappings of data too'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l phys-data -d 'Record physical addresses of data'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l data-page-size -d 'Record the size of the page that data lie in'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l code-page-size -d 'Record the size of the page that code lies in'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s W -l weight -d 'Record the cost of the sampled instruction, where the hardware knows it'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l transaction -d 'Record flags of memory transactions'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s s -l stat -d 'Record the counts of each thread when it ends'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-cpu -d 'Record the CPU of each sample'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s R -l raw-samples -d 'Record the raw data of all events that have some'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s b -l branch-any -d 'Record taken branches'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l switch-events -d 'Record context switches'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l latency -d 'Record what report needs for shares of time by the clock: when each thread ran'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l namespaces -d 'Record namespaces'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-cgroups -d 'Record cgroups'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-user -d 'Record in user mode only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l all-kernel -d 'Record in the kernel only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l overwrite -d 'Keep the newest records in memory and write them at the end'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l backlog -d 'Of persistent events, begin with the records that are held already, not with those from now on'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l buildid-mmap -d 'As -N: mappings carry their build-id anyway, wherever the kernel can tell it'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l group -d 'Put all events into one group of the kernel'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l running-time -d 'Record how long events were enabled and on a counter, where counts are recorded (:S)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l sample-identifier -d 'Begin each sample with its event\'s id, even where there is one event only'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l dry-run -d 'Open everything, record nothing'
complete -c pmc -n "__fish_pmc_using_subcommand record" -l tail-synthesize
complete -c pmc -n "__fish_pmc_using_subcommand record" -l no-bpf-event
complete -c pmc -n "__fish_pmc_using_subcommand record" -l timestamp-boundary
complete -c pmc -n "__fish_pmc_using_subcommand record" -l off-cpu
complete -c pmc -n "__fish_pmc_using_subcommand record" -l kcore
complete -c pmc -n "__fish_pmc_using_subcommand record" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s i -l input -d 'The recording' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -s s -l sort -d 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, parent, parallelism, …; +KEY adds one to the usual' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s F -l fields -d 'Columns in this order: overhead, overhead_children, latency, latency_children, sample, period, and sort keys; +FIELD adds one to the usual' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s g -l call-graph -d 'Call chains under each row: caller, callee or none; graph, fractal, flat or folded; percent, period or count; the smallest percentage in them' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l percent-limit -d 'Leave out rows, and branches of the tree, below this percentage' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l percentage -d 'Percentages of all samples (absolute) or of those that the filters left (relative)' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -l max-rows -l top -d 'Rows in the text; 0 shows all [default: 20; all in a pipe, with -t, --csv and --json]' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s c -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s C -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l time -d 'Only this time: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l max-stack -d 'Longest call chain; what lies further out is left out' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s d -l dsos -d 'Only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s S -l symbols -d 'Only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l symbol-filter -d 'Only functions with this in their names' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s p -l parent -d 'Sort by the innermost function that this pattern finds, too' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l ignore-callees -d 'What these functions called counts as their own' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l socket-filter -d 'Only samples of this socket\'s CPUs' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l parallelism -d 'Only samples taken while so many threads ran, such as 1 or 1-2,8 (pmc record --latency)' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l time-quantum -d 'Length of a slice for the sort key time: milliseconds, or with a unit (s, ms, us, ns)' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s t -l field-separator -d 'Print fields with this between them and nothing else' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l group-sort-idx -d 'Sort by the member of the group with this index' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stdio-color -l color -d 'Whether text has colours: always (a pipe then gets text for a person, too), never, or auto, on a terminal' -r -f -a "always\t''
never\t''
auto\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -l theme -d 'Colours for a dark or a light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand report" -s w -l column-widths -d 'Widths of the columns' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand report" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l itrace -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l switch-on -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l switch-off -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l addr2line -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l addr2line-style -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l unwind-style -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l pretty -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l samples -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -s M -l disassembler-style -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l objdump -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l prefix -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l prefix-strip -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l percent-type -r
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s G -l inverted -d 'Call chains from the caller down'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tree -d 'Print all call chains as one tree below the table, not those of each row under it (default on a terminal without -g)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l children -d 'Count what functions called as theirs too (default with call chains)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-children -d 'Only what functions cost themselves'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s n -l show-nr-samples -d 'Show the number of samples'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-total-period -d 'Show the sum of periods'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-cpu-utilization -d 'Show what part of each row was in the kernel, and what part in processes'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-join -d 'Leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stitch-lbr -d 'Complete calls that the processor kept (record --call-graph lbr) with those of the thread\'s samples before'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s U -l hide-unresolved -d 'Only functions whose names were found'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s x -l exclude-other -d 'Only samples with such a parent'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l inline -d 'Find inlined functions and lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-inline -d 'Names from symbol tables only'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l demangle -d 'Names as people write them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s b -l branch-stack -d 'Each branch of the recorded branch stacks counts once (default where there are some)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-branch-stack -d 'Count samples, not their branches'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l mem-mode -d 'Memory accesses by what they cost: data, its place in the caches, and by default all their sort keys'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l latency -d 'Sort by shares of time by the clock, not of CPU time (pmc record --latency)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l ns -d 'Times to the nanosecond'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s I -l header -d 'Show what the recording says of itself first'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l header-only -d 'Show only what the recording says of itself'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stats -d 'Show how many records of each kind there are, and nothing else'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s D -l dump-raw-trace -d 'Print all records, byte by byte and field by field, and how many there are of each kind'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tasks -d 'Show the processes and threads, and nothing else'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l mmaps -d 'Show the processes and threads with what they had mapped, and nothing else'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s T -l threads -d 'Show what each thread\'s counters said at its end, too (pmc record -s)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l full-names -d 'Names of functions as they are: else text on a terminal has them as one reads them, without template arguments, what a function returns, and what compilers added'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l full-source-path -d 'Paths of source files in full'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l raw-trace -d 'Tracepoints\' fields one by one, not as their format prints them'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s H -l hierarchy -d 'Rows below rows: what is the same in the first sort key is added up first'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l collapse-recursion -d 'Join direct recursion into one branch of the tree'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l group -d 'Print all events side by side, not only those that were recorded as a group'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-group -d 'Print a table for each event, groups or not'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l stdio -d 'Print plain text, on a terminal too'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l csv -d 'Print the table as CSV'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s q -l quiet -d 'Print rows without headings, and no messages but errors'
complete -c pmc -n "__fish_pmc_using_subcommand report" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand report" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand report" -s m -l modules
complete -c pmc -n "__fish_pmc_using_subcommand report" -l demangle-kernel
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-on-off-events
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tui
complete -c pmc -n "__fish_pmc_using_subcommand report" -l skip-empty
complete -c pmc -n "__fish_pmc_using_subcommand report" -l disable-order
complete -c pmc -n "__fish_pmc_using_subcommand report" -l ignore-vmlinux
complete -c pmc -n "__fish_pmc_using_subcommand report" -l asm-raw
complete -c pmc -n "__fish_pmc_using_subcommand report" -l source
complete -c pmc -n "__fish_pmc_using_subcommand report" -l total-cycles
complete -c pmc -n "__fish_pmc_using_subcommand report" -l branch-history
complete -c pmc -n "__fish_pmc_using_subcommand report" -l show-ref-call-graph
complete -c pmc -n "__fish_pmc_using_subcommand report" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s e -l event -d 'Events to sample (repeatable); the default is cycles, as precise as the machine can' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l pfm-events -d 'Events by libpfm4\'s names, such as inst_retired:any_p:u (repeatable)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l filter -d 'Keep only the tracepoint\'s samples for which this expression holds; the filters belong to the last -e, in order' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s F -l freq -d 'Samples a second, or `max`' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s c -l count -d 'Take a sample after so many occurrences; `auto`: as many as the event\'s maker recommends' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l call-graph -d 'Sample call chains: fp (frame pointers) or lbr (branch records)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l max-stack -d 'Greatest number of frames in a call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s C -l cpu -d 'Sample everything on these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s p -l pid -d 'Sample these running processes, by number or name, with all their threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s t -l tid -d 'Sample these running threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s u -l uid -d 'Sample all processes of this user (name or number)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s G -l cgroup -d 'Sample only in this cgroup; a list goes with the events in order' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s m -l mmap-pages -d 'Size of a ring: pages, or bytes with B, K, M or G (a power of two)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s d -l delay -d 'Time from one table to the next: seconds, as perf has it, or with a unit (500ms)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s s -l sort -d 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, cgroup, weight, addr' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l fields -d 'Columns in this order: overhead, overhead_children, sample, period, and sort keys' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l group-sort-idx -d 'Sort by the member of the group with this index' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s w -l column-widths -d 'Widths of the columns of the text' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l percent-limit -d 'Leave out rows, and branches of the tree, below this percentage' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s f -l count-filter -d 'Leave out rows with so many samples or fewer' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l percentage -d 'Percentages of all samples (absolute) or of those that the filters left (relative)' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -s E -l entries -d 'Rows of a table in the text [default: 20]' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l ignore-callees -d 'What these functions called counts as their own' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l dsos -d 'Only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l symbols -d 'Only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s M -l disassembler-style -d 'How x86 instructions are written: att or intel' -r -f -a "att\t''
intel\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l prefix -d 'A folder that stands for the first folders of sources\' paths; --prefix-strip says for how many' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l prefix-strip -d 'Leave out so many folders from the beginning of sources\' paths' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s r -l realtime -d 'Empty the rings at this real-time priority (1 to 99): before all other work' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l theme -d 'Colours for a dark or a light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l timeout -l duration -d 'End after this time: milliseconds, or with a unit (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s k -l vmlinux -d 'The kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l kallsyms -d 'A copy of /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand top" -l reserve -d 'What to do about a hardware reservation: auto, check, require, yield, off' -r -f -a "auto\t''
check\t''
require\t''
yield\t''
off\t''"
complete -c pmc -n "__fish_pmc_using_subcommand top" -l objdump -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l addr2line -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l num-thread-synthesize -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l proc-map-timeout -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l switch-on -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l switch-off -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -s j -l branch-filter -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l sym-annotate -r
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s g -d 'Sample call chains (by frame pointers)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s a -l all-cpus -d 'Sample everything on all CPUs (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s i -l no-inherit -d 'Do not sample children that the processes start'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s K -l hide-kernel-symbols -d 'Hide what runs in the kernel'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s U -l hide-user-symbols -d 'Hide what runs in programs'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l idle -d 'Show idle functions of the kernel too'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s z -l zero -d 'Start from zero after each table, instead of letting older samples fade'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l accumulate -d 'Let no sample fade: all since the start count alike'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s H -l hierarchy -d 'Rows below rows: what is the same in the first sort key is added up first (as text)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l group -d 'Events side by side in one table'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s n -l show-nr-samples -d 'Show the number of samples'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l show-total-period -d 'Show the sum of periods'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l children -d 'Count what functions called as theirs too (default with call chains)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-children -d 'Only what functions cost themselves'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l stdio -d 'Print plain tables, as when the output is no terminal'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l tui -d 'Take the whole screen (the default on a terminal)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l json -d 'Print a JSON object a line, one each interval, with all rows'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s v -l verbose -d 'Say more: what was opened, and how'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s q -l quiet -d 'Say nothing but errors'
complete -c pmc -n "__fish_pmc_using_subcommand top" -l demangle-kernel
complete -c pmc -n "__fish_pmc_using_subcommand top" -l force
complete -c pmc -n "__fish_pmc_using_subcommand top" -l source
complete -c pmc -n "__fish_pmc_using_subcommand top" -l asm-raw
complete -c pmc -n "__fish_pmc_using_subcommand top" -l all-cgroups
complete -c pmc -n "__fish_pmc_using_subcommand top" -l namespaces
complete -c pmc -n "__fish_pmc_using_subcommand top" -l no-bpf-event
complete -c pmc -n "__fish_pmc_using_subcommand top" -l overwrite
complete -c pmc -n "__fish_pmc_using_subcommand top" -l raw-trace
complete -c pmc -n "__fish_pmc_using_subcommand top" -l show-on-off-events
complete -c pmc -n "__fish_pmc_using_subcommand top" -l stitch-lbr
complete -c pmc -n "__fish_pmc_using_subcommand top" -s b -l branch-any
complete -c pmc -n "__fish_pmc_using_subcommand top" -l branch-history
complete -c pmc -n "__fish_pmc_using_subcommand top" -s D -l dump-symtab
complete -c pmc -n "__fish_pmc_using_subcommand top" -l ignore-vmlinux
complete -c pmc -n "__fish_pmc_using_subcommand top" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s i -l input -d 'The recording; `-` is standard input [default: what comes on it, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s s -l symbol -d 'The function' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s d -l dsos -l dso -d 'Only functions of these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s c -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s C -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l time -d 'Only this time: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l functions -d 'How many functions, where none is named; 0 shows all' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l percent-limit -d 'Leave out functions below this percentage of the event' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l percent-type -d 'What percentages are parts of: the function or all samples, by period or by number' -r -f -a "local-period\t''
local-hits\t''
global-period\t''
global-hits\t''
period-local\t''
period-global\t''
hits-local\t''
hits-global\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l max-rows -d 'Rows of each function, around its hottest; 0 shows all' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s M -l disassembler-style -d 'How x86 instructions are written: att or intel' -r -f -a "att\t''
intel\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l prefix -d 'A folder that stands for the first folders of sources\' paths; --prefix-strip says for how many' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l prefix-strip -d 'Leave out so many folders from the beginning of sources\' paths' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l theme -d 'Colours for a dark or a light terminal; auto asks the terminal [default: $PMC_THEME, else auto]' -r -f -a "auto\t''
dark\t''
light\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio-color -l color -d 'Whether text has colours: always, never, or auto, on a terminal' -r -f -a "always\t''
never\t''
auto\t''"
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l kcore -d 'A copy of the recorded machine\'s /proc/kcore' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l itrace -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l objdump -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l addr2line -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l data-type -r
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-join -d 'Leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s n -l show-nr-samples -d 'Show the number of samples too (in rows: instead of percentages)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l show-total-period -d 'Show the sum of periods too (in rows: instead of percentages)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l skip-missing -d 'Leave out functions whose instructions are not to be had'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l asm-raw -d 'Show the bytes of instructions'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-asm-raw -d 'Do not show the bytes of instructions (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l source -d 'Show source lines between the instructions (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-source -d 'Only instructions'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l source-only -d 'Only source lines'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s l -l print-line -d 'Write the file\'s name before each line\'s number'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s P -l full-paths -d 'Do not shorten paths of source files'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l group -d 'In rows, show all events side by side, not only those of a recorded group'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l demangle -d 'Names as people write them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tui -d 'Take the whole screen (the default on a terminal)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio -d 'Print text on a terminal too (so does any option that only text can follow, such as --max-rows); to a pipe rows in perf\'s form, which awk takes'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l stdio2 -d 'Print pmc\'s own listing to a pipe too, with arrows and the error of each percentage'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s q -l quiet -d 'Do not say what is not an error'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s m -l modules
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l demangle-kernel
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s D -l dump-raw-trace
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l code-with-type
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l insn-stat
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l type-stat
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l skip-empty
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l ignore-vmlinux
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s s -l sort -d 'Tell rows apart by these: dso, sym, srcline, srcfile, comm, pid, tid, cpu and the other keys of pmc report' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s c -l compute -d 'What is computed: delta, delta-abs, time, ratio, or wdiff:W1,W2 [default: time in text where all recordings have it, else delta-abs]' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s o -l order -d 'Sort by the base (0) or by the change of the first, second … recording after it' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l percent-limit -d 'Leave out rows below this percentage in all recordings' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l max-rows -l top -d 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]; with --stream, how many of the hottest call chains of each recording [default: 10]' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l percentage -d 'Percentages of all samples (absolute) or of those that the filters left (relative)' -r -f -a "absolute\t''
relative\t''"
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s C -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s d -l dsos -d 'Only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s S -l symbols -d 'Only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l time -d 'Only this part of each recording, such as 10%-20%, or FROM,TO in seconds of its clock' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s t -l field-separator -d 'Print fields with this between them' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s b -l baseline-only -d 'Only what the base has'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s p -l period -d 'Show the sums of periods'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s F -l formula -d 'Show how each value was computed'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tree -d 'Compare the call trees'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l stream -d 'Compare the hottest call chains, frame by frame by function and source line (-s says by what else)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l stdio -d 'Print plain text (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l csv -d 'Print the rows as CSV'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s q -l quiet -d 'Do not say what is not an error'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s m -l modules
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s D -l dump-raw-trace
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l cycles-hist
complete -c pmc -n "__fish_pmc_using_subcommand diff" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s i -l input -d 'The recording' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -s F -l fields -d 'What is printed; +NAME and -NAME change the usual choice; hw: sw: trace: raw: before it mean such events only' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l stop-bt -d 'Cut call chains off behind these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s S -l symbols -d 'Only samples taken in these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dsos -d 'Only samples taken in these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l max-stack -d 'Longest call chain' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s c -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s C -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l time -d 'Only this time: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand script" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l itrace -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l switch-on -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l switch-off -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l addr2line -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l unwind-style -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s s -l script -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -s g -l gen-script -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dlfilter -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dlarg -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l guestkallsyms -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l guestmodules -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l guestmount -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l guestvmlinux -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l insn-trace -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l graph-function -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l max-blocks -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l addr-range -r
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s G -l hide-call-graph -d 'Leave out callers'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l stitch-lbr -d 'Complete calls that the processor kept (record --call-graph lbr) with those of the thread\'s samples before'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-join -d 'Leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l ns -d 'Times to the nanosecond'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l reltime -d 'Times since the first line'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l deltatime -d 'Times since the line before'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-task-events -d 'Show forks, exits and new names too'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-mmap-events -d 'Show what was mapped too'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-switch-events -d 'Show context switches too, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-lost-events -d 'Show what was lost too'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-namespace-events -d 'Show namespaces too, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-cgroup-events -d 'Show cgroups too, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-bpf-events -d 'Show BPF programs that came and went too, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-text-poke-events -d 'Show changes of the kernel\'s code too, if recorded'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-round-events -d 'Show where the recorder\'s rounds end too'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s D -l dump-raw-trace -d 'Show all records too, byte by byte and field by field'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l dump-unsorted-raw-trace -d 'The same, records in the order of the file, not of time'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s I -l header -d 'Show what the recording says of itself first'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l header-only -d 'Show only what the recording says of itself'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l inline -d 'Find inlined functions (default where stacks were copied, as perf does)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-inline -d 'Names from symbol tables only'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l demangle -d 'Names as people write them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l full-source-path -d 'Paths of source files in full'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l per-event-dump -d 'Write each event\'s lines to a file of its own beside the recording: FILE.EVENT.dump'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s j -l json -d 'Print one JSON object a line'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand script" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand script" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand script" -l demangle-kernel
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-on-off-events
complete -c pmc -n "__fish_pmc_using_subcommand script" -s a -l all-cpus
complete -c pmc -n "__fish_pmc_using_subcommand script" -l show-kernel-path
complete -c pmc -n "__fish_pmc_using_subcommand script" -s l -l list
complete -c pmc -n "__fish_pmc_using_subcommand script" -l list-dlfilters
complete -c pmc -n "__fish_pmc_using_subcommand script" -l guest-code
complete -c pmc -n "__fish_pmc_using_subcommand script" -l merge-callchains
complete -c pmc -n "__fish_pmc_using_subcommand script" -s L -l Latency
complete -c pmc -n "__fish_pmc_using_subcommand script" -s d -l debug-mode
complete -c pmc -n "__fish_pmc_using_subcommand script" -l call-trace
complete -c pmc -n "__fish_pmc_using_subcommand script" -l call-ret-trace
complete -c pmc -n "__fish_pmc_using_subcommand script" -l xed
complete -c pmc -n "__fish_pmc_using_subcommand script" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l format -l type -d 'Format, whatever the file is called: html, svg, folded, firefox, speedscope, pprof, callgrind, gmon (a folder, for gprof), json or csv' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s i -l input -d 'The recording' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s o -l output -d 'The file to write (gmon: the folder); its ending names the format; `-` is standard output' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s e -l event -d 'Only this event [default: all where the format has room for them, else the first]' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l diff -d 'Show what is different from this recording (svg)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s c -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s C -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l time -d 'Only this time: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l max-stack -d 'Longest call chain; what lies further out is left out' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s d -l dsos -d 'Only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s S -l symbols -d 'Only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l symbol-filter -d 'Only functions with this in their names' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -s p -l parent -d 'Sort by the innermost function that this pattern finds, too' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l ignore-callees -d 'What these functions called counts as their own' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l socket-filter -d 'Only samples of this socket\'s CPUs' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand export" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-join -d 'Leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l stitch-lbr -d 'Complete calls that the processor kept (record --call-graph lbr) with those of the thread\'s samples before'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s U -l hide-unresolved -d 'Only functions whose names were found'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s x -l exclude-other -d 'Only samples with such a parent'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l inline -d 'Find inlined functions and lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-inline -d 'Names from symbol tables only'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l demangle -d 'Names as people write them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s q -l quiet -d 'Do not say what is not an error'
complete -c pmc -n "__fish_pmc_using_subcommand export" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s i -l input -d 'The recording' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s o -l output -d 'The file to write (gmon: the folder); its ending names the format; `-` is standard output' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s e -l event -d 'Only this event [default: all where the format has room for them, else the first]' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l diff -d 'Show what is different from this recording (svg)' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s c -l comms -d 'Only threads with these names' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l pid -d 'Only these processes' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l tid -d 'Only these threads' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s C -l cpu -d 'Only samples of these CPUs, such as 0-3,8' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l time -d 'Only this time: FROM,TO in seconds of the recording\'s clock, or 10%-20%' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l max-stack -d 'Longest call chain; what lies further out is left out' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s d -l dsos -d 'Only these programs and libraries' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s S -l symbols -d 'Only these functions' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l symbol-filter -d 'Only functions with this in their names' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s p -l parent -d 'Sort by the innermost function that this pattern finds, too' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l ignore-callees -d 'What these functions called counts as their own' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l socket-filter -d 'Only samples of this socket\'s CPUs' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l symfs -d 'A folder that stands for / of the recorded machine, for programs and sources' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l kallsyms -d 'A copy of the recorded machine\'s /proc/kallsyms' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s k -l vmlinux -d 'The recorded kernel\'s file with symbols' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l debuginfod -d 'Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS' -r
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-join -d 'Leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l stitch-lbr -d 'Complete calls that the processor kept (record --call-graph lbr) with those of the thread\'s samples before'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s U -l hide-unresolved -d 'Only functions whose names were found'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s x -l exclude-other -d 'Only samples with such a parent'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l inline -d 'Find inlined functions and lines (default)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-inline -d 'Names from symbol tables only'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l demangle -d 'Names as people write them (default)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-demangle -d 'Names as the compiler wrote them'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-cache -d 'Do not keep results for the next time'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l no-debuginfod -d 'Ask no debuginfod server, and use nothing that one gave earlier'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s q -l quiet -d 'Do not say what is not an error'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s i -l input -d 'The same' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s v -l verbose -d 'Show what the kernel was asked for: every field of each event\'s attr'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s F -l freq -d 'Show frequency or period'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s g -l group -d 'Show groups in braces'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -l trace-fields -d 'Show the fields of tracepoints'
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand evlist" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s i -l input -d 'The same' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s H -l with-hits -d 'Only files that samples lie in'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s k -l kernel -d 'The running kernel\'s build-id'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s m -l kernel-maps -d 'The running kernel and its modules, with their build-ids and where they lie'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand buildid-list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s i -l input -d 'The recording; `-` is standard input [default: what comes on it, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s o -l output -d 'Where the new recording goes; `-` is standard output. One that is there is kept as FILE.old' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l known-build-ids -d 'Build-ids of files at these paths; file://LIST has a pair a line' -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l symfs -d 'Look for the recorded files below this folder' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l itrace -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s k -l vmlinux -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l kallsyms -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l unwind-style -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l vm-time-correlation -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l guest-data -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l guestmount -r
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s b -l build-ids -d 'Put the build-ids of files that samples lie in into the stream'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l buildid-all -d 'Put the build-ids of all mapped files into the stream'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s B -l mmap2-buildids -d 'Leave out mappings of files without samples, and name the others\' files by build-id'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l mmap2-buildid-all -d 'Name the files of all mappings by build-id'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s j -l jit -d 'Make files of the code in jitdumps, and map them where and when it was'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l convert-callchain -d 'Make call chains of copied stacks (record --call-graph dwarf), and leave out the copies'
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l ignore-vmlinux
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l strip
complete -c pmc -n "__fish_pmc_using_subcommand inject" -l aslr
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s s -l sched-stat
complete -c pmc -n "__fish_pmc_using_subcommand inject" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand data; and not __fish_seen_subcommand_from convert" -f -a "convert" -d 'Write the samples in another format'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s i -l input -d 'The recording; `-` is standard input [default: what comes on it, else perf.data]' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l to-json -d 'Write one JSON document; `-` is standard output' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l to-ctf -d 'Refused: pmc writes no CTF' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l time -d 'Only samples from FROM to TO, in seconds, or percentages of the recording' -r
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l tod -d 'Times of day, in nanoseconds since 1970 (recordings made with -k)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l all -d 'Refused: the document has room for samples alone'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s f -l force -d 'Write over a file that is there'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s v -l verbose -d 'Changes nothing: what is wrong with a recording is always said'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand data; and __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s a -l add -d 'Keep these files' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s r -l remove -d 'Remove what has the build-ids of these files' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s p -l purge -d 'Remove all that was kept under these paths, older builds too' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s u -l update -d 'Keep these files anew' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s M -l missing -d 'List the build-ids of a recording that are not kept' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l target-ns -d 'With -a and -u: the files as this process sees them, in its mount namespace' -r
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l debuginfod -d 'With -a and -u: ask the servers in DEBUGINFOD_URLS for debug information, and keep it too' -r
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s k -l kcore -r
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s P -l purge-all -d 'Remove everything'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s l -l list -d 'List what is kept'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s v -l verbose -d 'Say what is done with each file'
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s f -l force
complete -c pmc -n "__fish_pmc_using_subcommand buildid-cache" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l exclude-buildids -d 'Leave out the build-ids that stand in this file, one a line' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l all -d 'Pack up the recording, too'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -l unpack -d 'Unpack into the cache by build-id'
complete -c pmc -n "__fish_pmc_using_subcommand archive" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand kallsyms" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand kallsyms" -s v -l verbose
complete -c pmc -n "__fish_pmc_using_subcommand kallsyms" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand config" -s l -l list -d 'Show everything that is set'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l system -d 'Only /etc/perfconfig'
complete -c pmc -n "__fish_pmc_using_subcommand config" -l user -d 'Only ~/.perfconfig'
complete -c pmc -n "__fish_pmc_using_subcommand config" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l unit -d 'Only events of this PMU' -r
complete -c pmc -n "__fish_pmc_using_subcommand list" -l import -d 'Keep events, metrics and texts of a copy of Intel\'s perfmon, Arm\'s data or the kernel\'s pmu-events' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand list" -s o -l output -d 'Write the list to this file' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand list" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s l -l long -d 'Show the request to the kernel, other names, units, the fields of tracepoints, formulas of metrics'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s d -l desc -d 'Say what the events count (the default; --no-desc for names alone)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l no-desc -d 'Do not say what the events count'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l deprecated -d 'Events of manuals that their makers have given up for others, too'
complete -c pmc -n "__fish_pmc_using_subcommand list" -s j -l json -d 'Print one JSON document (its `version` changes when a field changes its meaning)'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l raw-dump -d 'Print the names of events that open here on one line, as perf does for the shells\' completion'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l names -d 'Print names only, one a line, untried: for the shells\' completion'
complete -c pmc -n "__fish_pmc_using_subcommand list" -l debug
complete -c pmc -n "__fish_pmc_using_subcommand list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l header -d 'Only the recording\'s header, as perf report --header-only'
complete -c pmc -n "__fish_pmc_using_subcommand info" -l counters -d 'Only the counters: how many, of which class, how wide, how many are free, and who holds them'
complete -c pmc -n "__fish_pmc_using_subcommand info" -s j -l json -d 'Print one JSON document (its `version` changes when a field changes its meaning)'
complete -c pmc -n "__fish_pmc_using_subcommand info" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "add" -d 'Open an event and keep it: it counts and records from now on, until it is removed'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "list" -d 'List what is held, and what was lost with a holder that has ended'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "show" -d 'Show what an entry is, down to the request as the kernel took it'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "read" -d 'Show what an entry has counted since it was added'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "snapshot" -d 'Write the records that an entry holds now into a file that report, script and perf read'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "rename" -d 'Give an entry another name; its number stays'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "adopt" -d 'Keep the events of a running `pmc record` or `pmc stat`, which ends; they go on'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "rm" -d 'Close entries; forget those that were lost'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "hold" -d 'Run the holder in the foreground, as a service does'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and not __fish_seen_subcommand_from add list show read snapshot rename adopt rm hold attach" -f -a "attach" -d 'Record what an entry holds and what comes, until the end; the entry goes'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s e -l event -d 'The event, with its modifiers and qualifiers, as for record' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l pages -d 'Pages of each ring [default: 512 KiB]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s C -l cpu -d 'On these CPUs [default: all that are on line]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s p -l pid -d 'These running processes, all threads, with the children that they start' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l call-graph -d 'Samples carry call chains, by frame pointers' -r -f -a "fp\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l filter -d 'Filter expression for the tracepoint' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l share -d 'What users other than the holder\'s and root may have' -r -f -a "nothing\t''
counts\t''
records\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l overwrite -d 'Full rings keep the newest records, and every snapshot has them all (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l normal -d 'Full rings keep the oldest records, and a snapshot takes them out'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l json -d 'Print the new entry as a JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -l json -d 'One JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -l json -d 'One JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -l json -d 'One JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -s o -l output -d 'The file; `-` is standard output' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from snapshot" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rename" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rename" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -l from -d 'The process id of a `pmc record` or `pmc stat`' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from adopt" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rm" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -l until-empty -d 'Leave the terminal, and end when nothing is held any more: how `add` starts it'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from hold" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s o -l output -d 'Write to this file; `-`: to standard output, as a stream' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l timeout -l duration -d 'End recording after this time: milliseconds, or with a unit (10s, 2m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l unwind -d 'With dwarf and auto: live makes call chains of the copies at once; deferred writes the copies, as perf does, to be unwound when the file is read' -r -f -a "live\t''
deferred\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s r -l realtime -d 'Record with this real-time priority (SCHED_FIFO)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s S -l snapshot -d 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end; of a trace, so many bytes' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-output -d 'Start another file: at SIGUSR2 (signal), when it is so large (100M), or after a time (30s, 5m)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-output-event -d 'Start another file when one of these events happens, which are not recorded themselves' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l switch-max-files -d 'With --switch-output: keep only the newest N files' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l max-size -d 'End the recording when the file is so large, such as 100M' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s z -l compression-level -d 'Compress (zstd, level 1 to 22)' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l synth -d 'What is told of those who run already: task, mmap (and task), cgroup, all, no' -r -f -a "no\t''
all\t''
task\t''
mmap\t''
cgroup\t''"
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l control -d 'Take orders (enable, disable, freq, period, move, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]' -r
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l no-join -d 'With live, leave stacks cut where their copy ends: join them with nothing seen before of the same thread'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s B -l no-buildid -d 'Do not look for the build-ids of files'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s N -l no-buildid-cache -d 'Do not keep the files that samples lie in (see pmc buildid-cache)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l buildid-all -d 'Build-ids of all mapped files, not only of those with samples'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l timestamp-filename -d 'Put date and time behind the file\'s name'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s v -l verbose -d 'Say more: what was opened, and how'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l json -d 'In the end print on standard output what the recording came to, as a JSON object'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s q -l quiet -d 'Say nothing but errors'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand persist; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand start" -l profile -d 'Sample this event too [default: cycles, or cpu-clock where there are none]; the newest samples are kept' -r
complete -c pmc -n "__fish_pmc_using_subcommand start" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand start" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s o -l output -d 'Where the samples of --profile go' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand stop" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s j -l json -d 'Print one JSON document'
complete -c pmc -n "__fish_pmc_using_subcommand stop" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s f -d 'The lock file to use instead of PCP\'s' -r -F
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s D -d 'Stay in the foreground (the default)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s d -d 'Go to the background once the lock is held; a failure is reported before that'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l create -d 'Create the lock file if it is missing, for an agent that starts later (needs root in PCP\'s directory)'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -l json -d 'Once the lock is held, print a JSON object on standard output: file, holder, who shares it, agents'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s v -l version -d 'Print the version'
complete -c pmc -n "__fish_pmc_using_subcommand reserve" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand version" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand version" -s v -l build-options -d 'Show what this build can do, too'
complete -c pmc -n "__fish_pmc_using_subcommand version" -s h -l help -d 'Print help'
complete -c pmc -n "__fish_pmc_using_subcommand help" -l no-pager -d 'Show no text through a pager ($PERF_PAGER, else $PAGER, pager, less)'
complete -c pmc -n "__fish_pmc_using_subcommand help" -s a -l all
complete -c pmc -n "__fish_pmc_using_subcommand help" -s m -l man
complete -c pmc -n "__fish_pmc_using_subcommand help" -s i -l info
complete -c pmc -n "__fish_pmc_using_subcommand help" -s w -l web
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
complete -c pmc -n "__fish_pmc_using_subcommand export" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -s e -l event -x -a '(__pmc_events)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-report" -s M -l metrics -x -a '(__pmc_metrics)'
complete -c pmc -n "__fish_pmc_using_subcommand profile" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s p -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l pid -x -a '(__pmc_numbers /proc/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand stat-record" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand record" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand report" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand top" -s t -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand annotate" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand diff" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand script" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand export" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
complete -c pmc -n "__fish_pmc_using_subcommand flamegraph" -l tid -x -a '(__pmc_numbers /proc/*/task/*)'
