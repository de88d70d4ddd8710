
use builtin;
use str;

set edit:completion:arg-completer[pmc] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'pmc'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'pmc'= {
            cand -h 'Print help'
            cand --help 'Print help'
            cand -V 'Print version'
            cand --version 'Print version'
            cand stat 'Count events'
            cand record 'Sample where time goes, into a file'
            cand report 'Show where the time went in a recording'
            cand annotate 'Show what each instruction and source line of a function cost'
            cand diff 'Compare recordings, and tell differences from noise'
            cand script 'Print the samples of a recording one by one'
            cand list 'List the events that can be counted here, each tried'
            cand info 'Show what this machine can measure, who holds its counters, and what this user may do'
            cand reserve 'Reserve the hardware counters'
        }
        &'pmc;stat'= {
            cand -e 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)'
            cand --event 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)'
            cand -p 'Count in these running processes, with all their threads'
            cand --pid 'Count in these running processes, with all their threads'
            cand -t 'Count in these running threads'
            cand --tid 'Count in these running threads'
            cand -u 'Count in all processes of this user (name or number)'
            cand --uid 'Count in all processes of this user (name or number)'
            cand -C 'Count everything on these CPUs, such as 0-3,8'
            cand --cpu 'Count everything on these CPUs, such as 0-3,8'
            cand -G 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)'
            cand --cgroup 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)'
            cand --for-each-cgroup 'Count every event in each of these cgroups'
            cand -r 'Run the command N times and show mean and spread; 0: for ever'
            cand --repeat 'Run the command N times and show mean and spread; 0: for ever'
            cand -x 'Print CSV with this separator, with perf''s fields'
            cand --field-separator 'Print CSV with this separator, with perf''s fields'
            cand -j 'Print JSON: lines with perf''s fields (1), or one document with real numbers (2)'
            cand --json 'Print JSON: lines with perf''s fields (1), or one document with real numbers (2)'
            cand -o 'Write to this file instead of stderr'
            cand --output 'Write to this file instead of stderr'
            cand --log-fd 'Write to this open descriptor instead of stderr'
            cand --pre 'Run this shell command before each run'
            cand --post 'Run this shell command after each run'
            cand -I 'Print what was counted in each N milliseconds'
            cand --interval-print 'Print what was counted in each N milliseconds'
            cand --interval-count 'With -I: end after this many intervals'
            cand --timeout 'End counting after this many milliseconds'
            cand -D 'Start counting this many milliseconds after the start; -1: only when --control says so'
            cand --delay 'Start counting this many milliseconds after the start; -1: only when --control says so'
            cand -M 'Metrics by name, with the events that they need: IPC, GHz, branch-miss-rate …'
            cand --metrics 'Metrics by name, with the events that they need: IPC, GHz, branch-miss-rate …'
            cand --metric 'A metric of your own: ''name=expression over events'''
            cand --vs 'Compare commands, run alternately (repeatable)'
            cand --openmetrics 'Keep an OpenMetrics scrape file current (with -I); without a file, print the result in that form'
            cand --listen 'Serve OpenMetrics over HTTP at this address (with -I)'
            cand --control 'Take commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]'
            cand --reserve 'What to do about a hardware reservation: auto, check, require, yield, off'
            cand -i 'Do not count children that the command or the processes start'
            cand --no-inherit 'Do not count children that the command or the processes start'
            cand -a 'Count everything on all CPUs'
            cand --all-cpus 'Count everything on all CPUs'
            cand -A 'A row for each CPU instead of the sum (with -a or -C)'
            cand --no-aggr 'A row for each CPU instead of the sum (with -a or -C)'
            cand --per-thread 'A row for each thread'
            cand --per-core 'A row for each core'
            cand --per-die 'A row for each die'
            cand --per-socket 'A row for each socket'
            cand --per-node 'A row for each NUMA node'
            cand --all-user 'Count in user mode only'
            cand --all-kernel 'Count in the kernel only'
            cand -d 'More events: caches; -dd and -ddd for more'
            cand --detailed 'More events: caches; -dd and -ddd for more'
            cand -S 'Have the kernel write everything to disk before each run, as sync(1) does'
            cand --sync 'Have the kernel write everything to disk before each run, as sync(1) does'
            cand --table 'With -r: show every run''s time as a table'
            cand -n 'Count nothing, measure only the time'
            cand --null 'Count nothing, measure only the time'
            cand -v 'Say more: what was opened, counts before scaling'
            cand --verbose 'Say more: what was opened, counts before scaling'
            cand -q 'Print no counts of the command''s run, only what -I, --vs or a file gets'
            cand --quiet 'Print no counts of the command''s run, only what -I, --vs or a file gets'
            cand -B 'Group the digits of large numbers (the default; --no-big-num for none)'
            cand --big-num 'Group the digits of large numbers (the default; --no-big-num for none)'
            cand --no-big-num 'Do not group digits'
            cand --scale 'Scale counts that shared a counter to the whole time (the default; --no-scale for raw counts)'
            cand -c 'Show raw counts'
            cand --no-scale 'Show raw counts'
            cand --append 'With -o: append to the file'
            cand --interval-clear 'With -I: clear the screen before each interval'
            cand --summary 'With -I: print the totals at the end too'
            cand --no-csv-summary 'Do not put `summary` before the totals'' CSV lines'
            cand --no-merge 'A row for each instance of a PMU instead of their sum'
            cand --metric-only 'Only metrics, no counts'
            cand --topdown 'Where the pipeline''s slots go (top-down level 1)'
            cand --exact 'Never scale: where the events do not fit on the counters, split them over several runs'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;record'= {
            cand -e 'Events to sample (repeatable); the default is cycles, as precise as the machine can'
            cand --event 'Events to sample (repeatable); the default is cycles, as precise as the machine can'
            cand --filter 'Keep only the tracepoint''s records for which this expression holds; the filters belong to the last -e, in order'
            cand -F 'Samples a second, or `max`'
            cand --freq 'Samples a second, or `max`'
            cand -c 'Take a sample after so many occurrences'
            cand --count 'Take a sample after so many occurrences'
            cand --call-graph 'Record call chains: fp (frame pointers), lbr (branch records), dwarf[,BYTES] (copies of the stack)'
            cand --unwind 'With dwarf: deferred writes the copies, as perf does, to be unwound when the file is read'
            cand --max-stack 'Greatest number of frames in a call chain'
            cand -C 'Record everything on these CPUs, such as 0-3,8'
            cand --cpu 'Record everything on these CPUs, such as 0-3,8'
            cand -p 'Record these running processes, with all their threads'
            cand --pid 'Record these running processes, with all their threads'
            cand -t 'Record these running threads'
            cand --tid 'Record these running threads'
            cand -u 'Record all processes of this user (name or number)'
            cand --uid 'Record all processes of this user (name or number)'
            cand -G 'Record only in this cgroup; a list goes with the events in order (needs -a or -C)'
            cand --cgroup 'Record only in this cgroup; a list goes with the events in order (needs -a or -C)'
            cand -o 'Write to this file; `-`: to standard output, as a stream'
            cand --output 'Write to this file; `-`: to standard output, as a stream'
            cand -m 'Size of a ring: pages, or bytes with B, K, M or G (a power of two)'
            cand --mmap-pages 'Size of a ring: pages, or bytes with B, K, M or G (a power of two)'
            cand -D 'Start recording this many milliseconds after the start; -1: only when --control says so'
            cand --delay 'Start recording this many milliseconds after the start; -1: only when --control says so'
            cand --timeout 'End recording after this many milliseconds'
            cand --duration 'End recording after this many milliseconds'
            cand -j 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …'
            cand --branch-filter 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …'
            cand -I 'Record the registers at the interrupt: all, or those of a list; `?` lists them'
            cand --intr-regs 'Record the registers at the interrupt: all, or those of a list; `?` lists them'
            cand --user-regs 'Record the registers of the process: all, or those of a list; `?` lists them'
            cand -k 'The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number'
            cand --clockid 'The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number'
            cand --switch-output 'Start another file: at SIGUSR2 (signal), when it is so large (100M), or after a time (30s, 5m)'
            cand --switch-max-files 'With --switch-output: keep only the newest N files'
            cand --max-size 'End the recording when the file is so large, such as 100M'
            cand -z 'Compress (zstd, level 1 to 22)'
            cand --compression-level 'Compress (zstd, level 1 to 22)'
            cand --control 'Take orders (enable, disable, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]'
            cand --reserve 'What to do about a hardware reservation: auto, check, require, yield, off'
            cand --strict-freq 'Fail when the kernel does not allow that many samples a second'
            cand -g 'Record call chains (by frame pointers)'
            cand --kernel-callchains 'The kernel''s part of call chains only'
            cand --user-callchains 'The user part of call chains only'
            cand -a 'Record everything on all CPUs'
            cand --all-cpus 'Record everything on all CPUs'
            cand -i 'Do not record children that the command or the processes start'
            cand --no-inherit 'Do not record children that the command or the processes start'
            cand --per-thread 'One ring for each thread instead of one for each CPU; no children'
            cand -n 'Record no samples, only what is mapped and started'
            cand --no-samples 'Record no samples, only what is mapped and started'
            cand -T 'Record the time of each sample (the default)'
            cand --timestamp 'Record the time of each sample (the default)'
            cand -P 'Record the period of each sample (the default where it varies)'
            cand --period 'Record the period of each sample (the default where it varies)'
            cand --no-period 'Do not record the period of samples'
            cand -d 'Record data addresses and where data came from'
            cand --data 'Record data addresses and where data came from'
            cand --phys-data 'Record physical addresses of data'
            cand --data-page-size 'Record the size of the page that data lie in'
            cand --code-page-size 'Record the size of the page that code lies in'
            cand -W 'Record the cost of the sampled instruction, where the hardware knows it'
            cand --weight 'Record the cost of the sampled instruction, where the hardware knows it'
            cand --transaction 'Record flags of memory transactions'
            cand -s 'Record the counts of each thread when it ends'
            cand --stat 'Record the counts of each thread when it ends'
            cand --sample-cpu 'Record the CPU of each sample'
            cand -R 'Record the raw data of all events that have some'
            cand --raw-samples 'Record the raw data of all events that have some'
            cand -b 'Record taken branches'
            cand --branch-any 'Record taken branches'
            cand --switch-events 'Record context switches'
            cand --namespaces 'Record namespaces'
            cand --all-cgroups 'Record cgroups'
            cand --all-user 'Record in user mode only'
            cand --all-kernel 'Record in the kernel only'
            cand -S 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end'
            cand --snapshot 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end'
            cand --overwrite 'Keep the newest records in memory and write them at the end'
            cand -B 'Do not look for the build-ids of files'
            cand --no-buildid 'Do not look for the build-ids of files'
            cand -N 'Accepted for perf''s sake: pmc keeps no cache of recorded files'
            cand --no-buildid-cache 'Accepted for perf''s sake: pmc keeps no cache of recorded files'
            cand --buildid-all 'Build-ids of all mapped files, not only of those with samples'
            cand --buildid-mmap 'Accepted for perf''s sake: mappings carry their build-id wherever the kernel can tell it'
            cand --dry-run 'Open everything, record nothing'
            cand -v 'Say more: what was opened, and how'
            cand --verbose 'Say more: what was opened, and how'
            cand -q 'Say nothing but errors'
            cand --quiet 'Say nothing but errors'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;report'= {
            cand -i 'The recording'
            cand --input 'The recording'
            cand -s 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, weight, addr'
            cand --sort 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, weight, addr'
            cand -F 'Columns in this order: overhead, overhead_children, sample, period, and sort keys'
            cand --fields 'Columns in this order: overhead, overhead_children, sample, period, and sort keys'
            cand -g 'The call tree: caller, callee or none, and the smallest percentage shown in it'
            cand --call-graph 'The call tree: caller, callee or none, and the smallest percentage shown in it'
            cand --percent-limit 'Leave out rows, and branches of the tree, below this percentage'
            cand --percentage 'Percentages of all samples (absolute) or of those that the filters left (relative)'
            cand --max-rows 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]'
            cand --top 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]'
            cand --max-stack 'Longest call chain; what lies further out is left out'
            cand -c 'Only threads with these names'
            cand --comms 'Only threads with these names'
            cand -d 'Only these programs and libraries'
            cand --dsos 'Only these programs and libraries'
            cand -S 'Only these functions'
            cand --symbols 'Only these functions'
            cand --pid 'Only these processes'
            cand --tid 'Only these threads'
            cand -C 'Only samples of these CPUs, such as 0-3,8'
            cand --cpu 'Only samples of these CPUs, such as 0-3,8'
            cand --time 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%'
            cand --time-quantum 'Length of a slice for the sort key time, in milliseconds'
            cand -t 'Print fields with this between them and nothing else'
            cand --field-separator 'Print fields with this between them and nothing else'
            cand -w 'Widths of the columns'
            cand --column-widths 'Widths of the columns'
            cand --symfs 'A folder that stands for / of the recorded machine'
            cand --kallsyms 'A copy of the recorded machine''s /proc/kallsyms'
            cand -k 'The recorded kernel''s file with symbols'
            cand --vmlinux 'The recorded kernel''s file with symbols'
            cand -G 'The call tree from the caller down'
            cand --inverted 'The call tree from the caller down'
            cand --children 'Count what functions called as theirs too (default with call chains)'
            cand --no-children 'Only what functions cost themselves'
            cand -n 'Show the number of samples'
            cand --show-nr-samples 'Show the number of samples'
            cand --show-total-period 'Show the sum of periods'
            cand --header 'Show what the recording says of itself first'
            cand --header-only 'Show only what the recording says of itself'
            cand --inline 'Find inlined functions and lines (default)'
            cand --no-inline 'Names from symbol tables only'
            cand --no-demangle 'Names as the compiler wrote them'
            cand --collapse-recursion 'Join direct recursion into one branch of the tree'
            cand --group 'Print the members of a group of events side by side'
            cand --stdio 'Print plain text (the default)'
            cand -j 'Print one JSON document'
            cand --json 'Print one JSON document'
            cand --csv 'Print the table as CSV'
            cand --no-cache 'Do not keep results for the next time'
            cand --debuginfod 'Ask the servers in DEBUGINFOD_URLS for missing files'
            cand -q 'Do not say what is not an error'
            cand --quiet 'Do not say what is not an error'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;annotate'= {
            cand -i 'The recording; `-` is standard input [default: perf.data]'
            cand --input 'The recording; `-` is standard input [default: perf.data]'
            cand -s 'The function'
            cand --symbol 'The function'
            cand -d 'Only functions of these programs and libraries'
            cand --dsos 'Only functions of these programs and libraries'
            cand --dso 'Only functions of these programs and libraries'
            cand -C 'Only samples of these CPUs, such as 0-3,8'
            cand --cpu 'Only samples of these CPUs, such as 0-3,8'
            cand -c 'Only threads with these names'
            cand --comms 'Only threads with these names'
            cand --pid 'Only these processes'
            cand --tid 'Only these threads'
            cand --time 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%'
            cand --functions 'How many functions, where none is named; 0 shows all'
            cand --percent-limit 'Leave out functions below this percentage of the event'
            cand --percent-type 'What percentages are parts of: the function or all samples, by period or by number'
            cand --max-rows 'Rows of each function, around its hottest; 0 shows all'
            cand -M 'How x86 instructions are written: att or intel'
            cand --disassembler-style 'How x86 instructions are written: att or intel'
            cand --symfs 'A folder that stands for / of the recorded machine, for programs and sources'
            cand --kallsyms 'A copy of the recorded machine''s /proc/kallsyms'
            cand --kcore 'A copy of the recorded machine''s /proc/kcore'
            cand -k 'The recorded kernel''s file with symbols'
            cand --vmlinux 'The recorded kernel''s file with symbols'
            cand -n 'Show the number of samples too'
            cand --show-nr-samples 'Show the number of samples too'
            cand --asm-raw 'Show the bytes of instructions'
            cand --no-asm-raw 'Do not show the bytes of instructions (default)'
            cand --source 'Show source lines between the instructions (default)'
            cand --no-source 'Only instructions'
            cand --source-only 'Only source lines'
            cand -l 'Write the file''s name before each line''s number'
            cand --print-line 'Write the file''s name before each line''s number'
            cand -P 'Do not shorten paths of source files'
            cand --full-paths 'Do not shorten paths of source files'
            cand --stdio 'Print plain text (the default)'
            cand -j 'Print one JSON document'
            cand --json 'Print one JSON document'
            cand --no-cache 'Do not keep results for the next time'
            cand --debuginfod 'Ask the servers in DEBUGINFOD_URLS for missing files'
            cand -q 'Do not say what is not an error'
            cand --quiet 'Do not say what is not an error'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;diff'= {
            cand -s 'Tell rows apart by these: dso, sym, srcline, srcfile, comm, pid, tid, cpu and the other keys of pmc report'
            cand --sort 'Tell rows apart by these: dso, sym, srcline, srcfile, comm, pid, tid, cpu and the other keys of pmc report'
            cand -c 'What is computed: delta, delta-abs, ratio, or wdiff:W1,W2'
            cand --compute 'What is computed: delta, delta-abs, ratio, or wdiff:W1,W2'
            cand -o 'Sort by the base (0) or by the change of the first, second … recording after it'
            cand --order 'Sort by the base (0) or by the change of the first, second … recording after it'
            cand --percent-limit 'Leave out rows below this percentage in all recordings'
            cand --max-rows 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]'
            cand --top 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]'
            cand --percentage 'Percentages of all samples (absolute) or of those that the filters left (relative)'
            cand -C 'Only threads with these names'
            cand --comms 'Only threads with these names'
            cand -d 'Only these programs and libraries'
            cand --dsos 'Only these programs and libraries'
            cand -S 'Only these functions'
            cand --symbols 'Only these functions'
            cand --pid 'Only these processes'
            cand --tid 'Only these threads'
            cand --cpu 'Only samples of these CPUs, such as 0-3,8'
            cand --time 'Only this part of each recording, such as 10%-20%, or FROM,TO in seconds of its clock'
            cand -t 'Print fields with this between them'
            cand --field-separator 'Print fields with this between them'
            cand --symfs 'A folder that stands for / of the recorded machine'
            cand --kallsyms 'A copy of the recorded machine''s /proc/kallsyms'
            cand -k 'The recorded kernel''s file with symbols'
            cand --vmlinux 'The recorded kernel''s file with symbols'
            cand -b 'Only what the base has'
            cand --baseline-only 'Only what the base has'
            cand -p 'Show the sums of periods'
            cand --period 'Show the sums of periods'
            cand -F 'Show how each value was computed'
            cand --formula 'Show how each value was computed'
            cand --tree 'Compare the call trees'
            cand --stdio 'Print plain text (the default)'
            cand -j 'Print one JSON document'
            cand --json 'Print one JSON document'
            cand --csv 'Print the rows as CSV'
            cand --no-demangle 'Names as the compiler wrote them'
            cand --no-cache 'Do not keep results for the next time'
            cand --debuginfod 'Ask the servers in DEBUGINFOD_URLS for missing files'
            cand -q 'Do not say what is not an error'
            cand --quiet 'Do not say what is not an error'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;script'= {
            cand -i 'The recording'
            cand --input 'The recording'
            cand -F 'What is printed; +NAME and -NAME change the usual choice'
            cand --fields 'What is printed; +NAME and -NAME change the usual choice'
            cand --max-stack 'Longest call chain'
            cand --time 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%'
            cand -c 'Only threads with these names'
            cand --comms 'Only threads with these names'
            cand --pid 'Only these processes'
            cand --tid 'Only these threads'
            cand -C 'Only samples of these CPUs, such as 0-3,8'
            cand --cpu 'Only samples of these CPUs, such as 0-3,8'
            cand --symfs 'A folder that stands for / of the recorded machine'
            cand --kallsyms 'A copy of the recorded machine''s /proc/kallsyms'
            cand -k 'The recorded kernel''s file with symbols'
            cand --vmlinux 'The recorded kernel''s file with symbols'
            cand -G 'Leave out callers'
            cand --hide-call-graph 'Leave out callers'
            cand --ns 'Times to the nanosecond'
            cand --header 'Show what the recording says of itself first'
            cand --inline 'Find inlined functions (default where stacks were copied, as perf does)'
            cand --no-inline 'Names from symbol tables only'
            cand -j 'Print one JSON object a line'
            cand --json 'Print one JSON object a line'
            cand --no-cache 'Do not keep results for the next time'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;list'= {
            cand -l 'Show the request to the kernel, other names, units, and the fields of tracepoints'
            cand --long 'Show the request to the kernel, other names, units, and the fields of tracepoints'
            cand -j 'Print one JSON document (its `version` changes when a field changes its meaning)'
            cand --json 'Print one JSON document (its `version` changes when a field changes its meaning)'
            cand --names 'Print names only, one a line, untried: for the shells'' completion'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;info'= {
            cand --header 'Only the recording''s header, as perf report --header-only'
            cand --evlist 'Only the recording''s events, as perf evlist'
            cand --buildid-list 'Only the recording''s build-ids, as perf buildid-list'
            cand -v 'With --evlist: what was asked for, too'
            cand --verbose 'With --evlist: what was asked for, too'
            cand -j 'Print one JSON document (its `version` changes when a field changes its meaning)'
            cand --json 'Print one JSON document (its `version` changes when a field changes its meaning)'
            cand -h 'Print help'
            cand --help 'Print help'
        }
        &'pmc;reserve'= {
            cand -f 'The lock file to use instead of PCP''s'
            cand -D 'Stay in the foreground (the default)'
            cand -d 'Go to the background once the lock is held; a failure is reported before that'
            cand --create 'Create the lock file if it is missing, for an agent that starts later (needs root in PCP''s directory)'
            cand -v 'Print the version'
            cand --version 'Print the version'
            cand -h 'Print help'
            cand --help 'Print help'
        }
    ]
    $completions[$command]
}

# --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---

use path
use re

var pmc-by-parser~ = $edit:completion:arg-completer[pmc]

# The list so far, up to its last item.
fn pmc-head {|pattern list| put [(re:find &max=1 '^(?:'$pattern')?' $list)][0][text] }

# The candidates for an event list: each is the list so far with its last item completed.
fn pmc-events {|pmc list|
    var devices = /sys/bus/event_source/devices
    # A pmu/terms/ that is closed is behind us.
    var head = (pmc-head '(?:[^/]*/[^/]*/)+' $list)
    set list = $list[(count $head)..]
    if (str:contains $list /) {
        var pmu = (re:replace '.*[,{]' '' (re:replace '/.*' '' $list))
        set head = $head(pmc-head '.*[/,]' $list)
        for file [$devices/$pmu/events/*[nomatch-ok]] {
            if (not (re:match '\.(unit|scale|snapshot|per-pkg)$' $file)) { put $head(path:base $file) }
        }
        for file [$devices/$pmu/format/*[nomatch-ok]] { put $head(path:base $file)'=' }
    } else {
        set head = $head(pmc-head '.*[,{]' $list)
        for folder [$devices/*[nomatch-ok]] { put $head(path:base $folder)/ }
        try { (external $pmc) list --names 2>/dev/null | from-lines | each {|name| put $head$name } } catch { }
    }
}

fn pmc-numbers {|list @folders|
    var head = (pmc-head '.*,' $list)
    for folder $folders { put $head(path:base $folder) }
}

fn pmc-value {|pmc key list|
    if (has-value ['stat:-e' 'stat:--event' 'record:-e' 'record:--event'] $key) {
        pmc-events $pmc $list
    } elif (has-value ['stat:-p' 'stat:--pid' 'record:-p' 'record:--pid' 'report:--pid' 'annotate:--pid' 'diff:--pid' 'script:--pid'] $key) {
        pmc-numbers $list /proc/*[set:0123456789]
    } elif (has-value ['stat:-t' 'stat:--tid' 'record:-t' 'record:--tid' 'report:--tid' 'annotate:--tid' 'diff:--tid' 'script:--tid'] $key) {
        pmc-numbers $list /proc/*[set:0123456789]/task/*[set:0123456789]
    }
}

set edit:completion:arg-completer[pmc] = {|@words|
    var found = []
    if (> (count $words) 3) {
        set found = [(pmc-value $words[0] $words[1]:$words[-2] $words[-1])]
    }
    if (eq $found []) {
        pmc-by-parser $@words
    } else {
        for candidate $found { edit:complex-candidate $candidate &code-suffix='' }
    }
}
