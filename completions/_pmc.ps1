
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'pmc' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---
    $words = @($commandAst.CommandElements | ForEach-Object { $_.Extent.Text })
    $option = if ($wordToComplete) { $words[-2] } else { $words[-1] }
    $devices = '/sys/bus/event_source/devices'
    $head = ''
    $found = switch -CaseSensitive ("$($words[1]):$option") {
        { $_ -cin @('stat:-e', 'stat:--event', 'record:-e', 'record:--event') } {
            # A pmu/terms/ that is closed is behind us.
            $list = $wordToComplete
            if ($list -match '^(?:[^/]*/[^/]*/)+') { $head = $Matches[0]; $list = $list.Substring($head.Length) }
            if ($list.Contains('/')) {
                $pmu = $list -replace '/.*' -replace '.*[,{]'
                $head += $list -replace '[^/,]*$'
                Get-ChildItem "$devices/$pmu/events" -Name -Exclude *.unit, *.scale, *.snapshot, *.per-pkg -ErrorAction Ignore
                Get-ChildItem "$devices/$pmu/format" -Name -ErrorAction Ignore | ForEach-Object { "$_=" }
            } else {
                $head += $list -replace '[^,{]*$'
                Get-ChildItem $devices -Name -ErrorAction Ignore | ForEach-Object { "$_/" }
                & $words[0] list --names 2>$null
            }
        }
        { $_ -cin @('stat:-p', 'stat:--pid', 'record:-p', 'record:--pid', 'report:--pid', 'annotate:--pid', 'script:--pid') } {
            $head = $wordToComplete -replace '[^,]*$'
            Get-ChildItem /proc -Name | Where-Object { $_ -match '^\d+$' }
        }
        { $_ -cin @('stat:-t', 'stat:--tid', 'record:-t', 'record:--tid', 'report:--tid', 'annotate:--tid', 'script:--tid') } {
            $head = $wordToComplete -replace '[^,]*$'
            Get-ChildItem /proc/*/task/* -Name -ErrorAction Ignore | ForEach-Object { Split-Path $_ -Leaf } | Where-Object { $_ -match '^\d+$' }
        }
    }
    if ($found) {
        return $found | ForEach-Object { "$head$_" } | Where-Object { $_.StartsWith($wordToComplete) } |
            ForEach-Object { [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_) }
    }


    $commandElements = $commandAst.CommandElements
    $command = @(
        'pmc'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'pmc' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('stat', 'stat', [CompletionResultType]::ParameterValue, 'Count events')
            [CompletionResult]::new('record', 'record', [CompletionResultType]::ParameterValue, 'Sample where time goes, into a file')
            [CompletionResult]::new('info', 'info', [CompletionResultType]::ParameterValue, 'Show what this machine can measure, who holds its counters, and what this user may do')
            [CompletionResult]::new('report', 'report', [CompletionResultType]::ParameterValue, 'Show where the time went in a recording')
            [CompletionResult]::new('annotate', 'annotate', [CompletionResultType]::ParameterValue, 'Show what each instruction and source line of a function cost')
            [CompletionResult]::new('script', 'script', [CompletionResultType]::ParameterValue, 'Print the samples of a recording one by one')
            [CompletionResult]::new('reserve', 'reserve', [CompletionResultType]::ParameterValue, 'Reserve the hardware counters')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the events that can be counted here, each tried')
            break
        }
        'pmc;stat' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Count in these running processes, with all their threads')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Count in these running processes, with all their threads')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Count in these running threads')
            [CompletionResult]::new('--tid', '--tid', [CompletionResultType]::ParameterName, 'Count in these running threads')
            [CompletionResult]::new('-u', '-u', [CompletionResultType]::ParameterName, 'Count in all processes of this user (name or number)')
            [CompletionResult]::new('--uid', '--uid', [CompletionResultType]::ParameterName, 'Count in all processes of this user (name or number)')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Count everything on these CPUs, such as 0-3,8')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Count everything on these CPUs, such as 0-3,8')
            [CompletionResult]::new('-G', '-G ', [CompletionResultType]::ParameterName, 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)')
            [CompletionResult]::new('--cgroup', '--cgroup', [CompletionResultType]::ParameterName, 'Count only in this cgroup; a list goes with the events in order (needs -a or -C)')
            [CompletionResult]::new('--for-each-cgroup', '--for-each-cgroup', [CompletionResultType]::ParameterName, 'Count every event in each of these cgroups')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Run the command N times and show mean and spread; 0: for ever')
            [CompletionResult]::new('--repeat', '--repeat', [CompletionResultType]::ParameterName, 'Run the command N times and show mean and spread; 0: for ever')
            [CompletionResult]::new('-x', '-x', [CompletionResultType]::ParameterName, 'Print CSV with this separator, with perf''s fields')
            [CompletionResult]::new('--field-separator', '--field-separator', [CompletionResultType]::ParameterName, 'Print CSV with this separator, with perf''s fields')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print JSON: lines with perf''s fields (1), or one document with real numbers (2)')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON: lines with perf''s fields (1), or one document with real numbers (2)')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write to this file instead of stderr')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write to this file instead of stderr')
            [CompletionResult]::new('--log-fd', '--log-fd', [CompletionResultType]::ParameterName, 'Write to this open descriptor instead of stderr')
            [CompletionResult]::new('--pre', '--pre', [CompletionResultType]::ParameterName, 'Run this shell command before each run')
            [CompletionResult]::new('--post', '--post', [CompletionResultType]::ParameterName, 'Run this shell command after each run')
            [CompletionResult]::new('-I', '-I ', [CompletionResultType]::ParameterName, 'Print what was counted in each N milliseconds')
            [CompletionResult]::new('--interval-print', '--interval-print', [CompletionResultType]::ParameterName, 'Print what was counted in each N milliseconds')
            [CompletionResult]::new('--interval-count', '--interval-count', [CompletionResultType]::ParameterName, 'With -I: end after this many intervals')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'End counting after this many milliseconds')
            [CompletionResult]::new('-D', '-D ', [CompletionResultType]::ParameterName, 'Start counting this many milliseconds after the start; -1: only when --control says so')
            [CompletionResult]::new('--delay', '--delay', [CompletionResultType]::ParameterName, 'Start counting this many milliseconds after the start; -1: only when --control says so')
            [CompletionResult]::new('-M', '-M ', [CompletionResultType]::ParameterName, 'Metrics by name, with the events that they need: IPC, GHz, branch-miss-rate …')
            [CompletionResult]::new('--metrics', '--metrics', [CompletionResultType]::ParameterName, 'Metrics by name, with the events that they need: IPC, GHz, branch-miss-rate …')
            [CompletionResult]::new('--metric', '--metric', [CompletionResultType]::ParameterName, 'A metric of your own: ''name=expression over events''')
            [CompletionResult]::new('--vs', '--vs', [CompletionResultType]::ParameterName, 'Compare commands, run alternately (repeatable)')
            [CompletionResult]::new('--openmetrics', '--openmetrics', [CompletionResultType]::ParameterName, 'Keep an OpenMetrics scrape file current (with -I); without a file, print the result in that form')
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'Serve OpenMetrics over HTTP at this address (with -I)')
            [CompletionResult]::new('--control', '--control', [CompletionResultType]::ParameterName, 'Take commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]')
            [CompletionResult]::new('--reserve', '--reserve', [CompletionResultType]::ParameterName, 'What to do about a hardware reservation: auto, check, require, yield, off')
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'Do not count children that the command or the processes start')
            [CompletionResult]::new('--no-inherit', '--no-inherit', [CompletionResultType]::ParameterName, 'Do not count children that the command or the processes start')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Count everything on all CPUs')
            [CompletionResult]::new('--all-cpus', '--all-cpus', [CompletionResultType]::ParameterName, 'Count everything on all CPUs')
            [CompletionResult]::new('-A', '-A ', [CompletionResultType]::ParameterName, 'A row for each CPU instead of the sum (with -a or -C)')
            [CompletionResult]::new('--no-aggr', '--no-aggr', [CompletionResultType]::ParameterName, 'A row for each CPU instead of the sum (with -a or -C)')
            [CompletionResult]::new('--per-thread', '--per-thread', [CompletionResultType]::ParameterName, 'A row for each thread')
            [CompletionResult]::new('--per-core', '--per-core', [CompletionResultType]::ParameterName, 'A row for each core')
            [CompletionResult]::new('--per-die', '--per-die', [CompletionResultType]::ParameterName, 'A row for each die')
            [CompletionResult]::new('--per-socket', '--per-socket', [CompletionResultType]::ParameterName, 'A row for each socket')
            [CompletionResult]::new('--per-node', '--per-node', [CompletionResultType]::ParameterName, 'A row for each NUMA node')
            [CompletionResult]::new('--all-user', '--all-user', [CompletionResultType]::ParameterName, 'Count in user mode only')
            [CompletionResult]::new('--all-kernel', '--all-kernel', [CompletionResultType]::ParameterName, 'Count in the kernel only')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'More events: caches; -dd and -ddd for more')
            [CompletionResult]::new('--detailed', '--detailed', [CompletionResultType]::ParameterName, 'More events: caches; -dd and -ddd for more')
            [CompletionResult]::new('-S', '-S ', [CompletionResultType]::ParameterName, 'Have the kernel write everything to disk before each run, as sync(1) does')
            [CompletionResult]::new('--sync', '--sync', [CompletionResultType]::ParameterName, 'Have the kernel write everything to disk before each run, as sync(1) does')
            [CompletionResult]::new('--table', '--table', [CompletionResultType]::ParameterName, 'With -r: show every run''s time as a table')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Count nothing, measure only the time')
            [CompletionResult]::new('--null', '--null', [CompletionResultType]::ParameterName, 'Count nothing, measure only the time')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Say more: what was opened, counts before scaling')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Say more: what was opened, counts before scaling')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Print no counts of the command''s run, only what -I, --vs or a file gets')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print no counts of the command''s run, only what -I, --vs or a file gets')
            [CompletionResult]::new('-B', '-B ', [CompletionResultType]::ParameterName, 'Group the digits of large numbers (the default; --no-big-num for none)')
            [CompletionResult]::new('--big-num', '--big-num', [CompletionResultType]::ParameterName, 'Group the digits of large numbers (the default; --no-big-num for none)')
            [CompletionResult]::new('--no-big-num', '--no-big-num', [CompletionResultType]::ParameterName, 'Do not group digits')
            [CompletionResult]::new('--scale', '--scale', [CompletionResultType]::ParameterName, 'Scale counts that shared a counter to the whole time (the default; --no-scale for raw counts)')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Show raw counts')
            [CompletionResult]::new('--no-scale', '--no-scale', [CompletionResultType]::ParameterName, 'Show raw counts')
            [CompletionResult]::new('--append', '--append', [CompletionResultType]::ParameterName, 'With -o: append to the file')
            [CompletionResult]::new('--interval-clear', '--interval-clear', [CompletionResultType]::ParameterName, 'With -I: clear the screen before each interval')
            [CompletionResult]::new('--summary', '--summary', [CompletionResultType]::ParameterName, 'With -I: print the totals at the end too')
            [CompletionResult]::new('--no-csv-summary', '--no-csv-summary', [CompletionResultType]::ParameterName, 'Do not put `summary` before the totals'' CSV lines')
            [CompletionResult]::new('--no-merge', '--no-merge', [CompletionResultType]::ParameterName, 'A row for each instance of a PMU instead of their sum')
            [CompletionResult]::new('--metric-only', '--metric-only', [CompletionResultType]::ParameterName, 'Only metrics, no counts')
            [CompletionResult]::new('--topdown', '--topdown', [CompletionResultType]::ParameterName, 'Where the pipeline''s slots go (top-down level 1)')
            [CompletionResult]::new('--exact', '--exact', [CompletionResultType]::ParameterName, 'Never scale: where the events do not fit on the counters, split them over several runs')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;record' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Events to sample (repeatable); the default is cycles, as precise as the machine can')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Events to sample (repeatable); the default is cycles, as precise as the machine can')
            [CompletionResult]::new('--filter', '--filter', [CompletionResultType]::ParameterName, 'Keep only the tracepoint''s records for which this expression holds; the filters belong to the last -e, in order')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'Samples a second, or `max`')
            [CompletionResult]::new('--freq', '--freq', [CompletionResultType]::ParameterName, 'Samples a second, or `max`')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Take a sample after so many occurrences')
            [CompletionResult]::new('--count', '--count', [CompletionResultType]::ParameterName, 'Take a sample after so many occurrences')
            [CompletionResult]::new('--call-graph', '--call-graph', [CompletionResultType]::ParameterName, 'Record call chains: fp (frame pointers), lbr (branch records), dwarf[,BYTES] (copies of the stack)')
            [CompletionResult]::new('--unwind', '--unwind', [CompletionResultType]::ParameterName, 'With dwarf: deferred writes the copies, as perf does, to be unwound when the file is read')
            [CompletionResult]::new('--max-stack', '--max-stack', [CompletionResultType]::ParameterName, 'Greatest number of frames in a call chain')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Record everything on these CPUs, such as 0-3,8')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Record everything on these CPUs, such as 0-3,8')
            [CompletionResult]::new('-p', '-p', [CompletionResultType]::ParameterName, 'Record these running processes, with all their threads')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Record these running processes, with all their threads')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Record these running threads')
            [CompletionResult]::new('--tid', '--tid', [CompletionResultType]::ParameterName, 'Record these running threads')
            [CompletionResult]::new('-u', '-u', [CompletionResultType]::ParameterName, 'Record all processes of this user (name or number)')
            [CompletionResult]::new('--uid', '--uid', [CompletionResultType]::ParameterName, 'Record all processes of this user (name or number)')
            [CompletionResult]::new('-G', '-G ', [CompletionResultType]::ParameterName, 'Record only in this cgroup; a list goes with the events in order (needs -a or -C)')
            [CompletionResult]::new('--cgroup', '--cgroup', [CompletionResultType]::ParameterName, 'Record only in this cgroup; a list goes with the events in order (needs -a or -C)')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write to this file; `-`: to standard output, as a stream')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write to this file; `-`: to standard output, as a stream')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'Size of a ring: pages, or bytes with B, K, M or G (a power of two)')
            [CompletionResult]::new('--mmap-pages', '--mmap-pages', [CompletionResultType]::ParameterName, 'Size of a ring: pages, or bytes with B, K, M or G (a power of two)')
            [CompletionResult]::new('-D', '-D ', [CompletionResultType]::ParameterName, 'Start recording this many milliseconds after the start; -1: only when --control says so')
            [CompletionResult]::new('--delay', '--delay', [CompletionResultType]::ParameterName, 'Start recording this many milliseconds after the start; -1: only when --control says so')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'End recording after this many milliseconds')
            [CompletionResult]::new('--duration', '--duration', [CompletionResultType]::ParameterName, 'End recording after this many milliseconds')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …')
            [CompletionResult]::new('--branch-filter', '--branch-filter', [CompletionResultType]::ParameterName, 'Record branches of these kinds: any, any_call, any_ret, ind_call, cond, u, k, …')
            [CompletionResult]::new('-I', '-I ', [CompletionResultType]::ParameterName, 'Record the registers at the interrupt: all, or those of a list; `?` lists them')
            [CompletionResult]::new('--intr-regs', '--intr-regs', [CompletionResultType]::ParameterName, 'Record the registers at the interrupt: all, or those of a list; `?` lists them')
            [CompletionResult]::new('--user-regs', '--user-regs', [CompletionResultType]::ParameterName, 'Record the registers of the process: all, or those of a list; `?` lists them')
            [CompletionResult]::new('-k', '-k', [CompletionResultType]::ParameterName, 'The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number')
            [CompletionResult]::new('--clockid', '--clockid', [CompletionResultType]::ParameterName, 'The clock of the time stamps: monotonic, monotonic_raw, boottime, realtime, tai, or a number')
            [CompletionResult]::new('--switch-output', '--switch-output', [CompletionResultType]::ParameterName, 'Start another file: at SIGUSR2 (signal), when it is so large (100M), or after a time (30s, 5m)')
            [CompletionResult]::new('--switch-max-files', '--switch-max-files', [CompletionResultType]::ParameterName, 'With --switch-output: keep only the newest N files')
            [CompletionResult]::new('--max-size', '--max-size', [CompletionResultType]::ParameterName, 'End the recording when the file is so large, such as 100M')
            [CompletionResult]::new('-z', '-z', [CompletionResultType]::ParameterName, 'Compress (zstd, level 1 to 22)')
            [CompletionResult]::new('--compression-level', '--compression-level', [CompletionResultType]::ParameterName, 'Compress (zstd, level 1 to 22)')
            [CompletionResult]::new('--control', '--control', [CompletionResultType]::ParameterName, 'Take orders (enable, disable, snapshot, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]')
            [CompletionResult]::new('--reserve', '--reserve', [CompletionResultType]::ParameterName, 'What to do about a hardware reservation: auto, check, require, yield, off')
            [CompletionResult]::new('--strict-freq', '--strict-freq', [CompletionResultType]::ParameterName, 'Fail when the kernel does not allow that many samples a second')
            [CompletionResult]::new('-g', '-g', [CompletionResultType]::ParameterName, 'Record call chains (by frame pointers)')
            [CompletionResult]::new('--kernel-callchains', '--kernel-callchains', [CompletionResultType]::ParameterName, 'The kernel''s part of call chains only')
            [CompletionResult]::new('--user-callchains', '--user-callchains', [CompletionResultType]::ParameterName, 'The user part of call chains only')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Record everything on all CPUs')
            [CompletionResult]::new('--all-cpus', '--all-cpus', [CompletionResultType]::ParameterName, 'Record everything on all CPUs')
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'Do not record children that the command or the processes start')
            [CompletionResult]::new('--no-inherit', '--no-inherit', [CompletionResultType]::ParameterName, 'Do not record children that the command or the processes start')
            [CompletionResult]::new('--per-thread', '--per-thread', [CompletionResultType]::ParameterName, 'One ring for each thread instead of one for each CPU; no children')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Record no samples, only what is mapped and started')
            [CompletionResult]::new('--no-samples', '--no-samples', [CompletionResultType]::ParameterName, 'Record no samples, only what is mapped and started')
            [CompletionResult]::new('-T', '-T ', [CompletionResultType]::ParameterName, 'Record the time of each sample (the default)')
            [CompletionResult]::new('--timestamp', '--timestamp', [CompletionResultType]::ParameterName, 'Record the time of each sample (the default)')
            [CompletionResult]::new('-P', '-P ', [CompletionResultType]::ParameterName, 'Record the period of each sample (the default where it varies)')
            [CompletionResult]::new('--period', '--period', [CompletionResultType]::ParameterName, 'Record the period of each sample (the default where it varies)')
            [CompletionResult]::new('--no-period', '--no-period', [CompletionResultType]::ParameterName, 'Do not record the period of samples')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Record data addresses and where data came from')
            [CompletionResult]::new('--data', '--data', [CompletionResultType]::ParameterName, 'Record data addresses and where data came from')
            [CompletionResult]::new('--phys-data', '--phys-data', [CompletionResultType]::ParameterName, 'Record physical addresses of data')
            [CompletionResult]::new('--data-page-size', '--data-page-size', [CompletionResultType]::ParameterName, 'Record the size of the page that data lie in')
            [CompletionResult]::new('--code-page-size', '--code-page-size', [CompletionResultType]::ParameterName, 'Record the size of the page that code lies in')
            [CompletionResult]::new('-W', '-W ', [CompletionResultType]::ParameterName, 'Record the cost of the sampled instruction, where the hardware knows it')
            [CompletionResult]::new('--weight', '--weight', [CompletionResultType]::ParameterName, 'Record the cost of the sampled instruction, where the hardware knows it')
            [CompletionResult]::new('--transaction', '--transaction', [CompletionResultType]::ParameterName, 'Record flags of memory transactions')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Record the counts of each thread when it ends')
            [CompletionResult]::new('--stat', '--stat', [CompletionResultType]::ParameterName, 'Record the counts of each thread when it ends')
            [CompletionResult]::new('--sample-cpu', '--sample-cpu', [CompletionResultType]::ParameterName, 'Record the CPU of each sample')
            [CompletionResult]::new('-R', '-R ', [CompletionResultType]::ParameterName, 'Record the raw data of all events that have some')
            [CompletionResult]::new('--raw-samples', '--raw-samples', [CompletionResultType]::ParameterName, 'Record the raw data of all events that have some')
            [CompletionResult]::new('-b', '-b', [CompletionResultType]::ParameterName, 'Record taken branches')
            [CompletionResult]::new('--branch-any', '--branch-any', [CompletionResultType]::ParameterName, 'Record taken branches')
            [CompletionResult]::new('--switch-events', '--switch-events', [CompletionResultType]::ParameterName, 'Record context switches')
            [CompletionResult]::new('--namespaces', '--namespaces', [CompletionResultType]::ParameterName, 'Record namespaces')
            [CompletionResult]::new('--all-cgroups', '--all-cgroups', [CompletionResultType]::ParameterName, 'Record cgroups')
            [CompletionResult]::new('--all-user', '--all-user', [CompletionResultType]::ParameterName, 'Record in user mode only')
            [CompletionResult]::new('--all-kernel', '--all-kernel', [CompletionResultType]::ParameterName, 'Record in the kernel only')
            [CompletionResult]::new('-S', '-S ', [CompletionResultType]::ParameterName, 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end')
            [CompletionResult]::new('--snapshot', '--snapshot', [CompletionResultType]::ParameterName, 'Keep the newest records in memory; write a file at SIGUSR2, a --control snapshot, and the end')
            [CompletionResult]::new('--overwrite', '--overwrite', [CompletionResultType]::ParameterName, 'Keep the newest records in memory and write them at the end')
            [CompletionResult]::new('-B', '-B ', [CompletionResultType]::ParameterName, 'Do not look for the build-ids of files')
            [CompletionResult]::new('--no-buildid', '--no-buildid', [CompletionResultType]::ParameterName, 'Do not look for the build-ids of files')
            [CompletionResult]::new('-N', '-N ', [CompletionResultType]::ParameterName, 'Accepted for perf''s sake: pmc keeps no cache of recorded files')
            [CompletionResult]::new('--no-buildid-cache', '--no-buildid-cache', [CompletionResultType]::ParameterName, 'Accepted for perf''s sake: pmc keeps no cache of recorded files')
            [CompletionResult]::new('--buildid-all', '--buildid-all', [CompletionResultType]::ParameterName, 'Build-ids of all mapped files, not only of those with samples')
            [CompletionResult]::new('--buildid-mmap', '--buildid-mmap', [CompletionResultType]::ParameterName, 'Accepted for perf''s sake: mappings carry their build-id wherever the kernel can tell it')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'Open everything, record nothing')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Say more: what was opened, and how')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Say more: what was opened, and how')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;info' {
            [CompletionResult]::new('--header', '--header', [CompletionResultType]::ParameterName, 'Only the recording''s header, as perf report --header-only')
            [CompletionResult]::new('--evlist', '--evlist', [CompletionResultType]::ParameterName, 'Only the recording''s events, as perf evlist')
            [CompletionResult]::new('--buildid-list', '--buildid-list', [CompletionResultType]::ParameterName, 'Only the recording''s build-ids, as perf buildid-list')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'With --evlist: what was asked for, too')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'With --evlist: what was asked for, too')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print one JSON document (its `version` changes when a field changes its meaning)')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document (its `version` changes when a field changes its meaning)')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;report' {
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'The recording')
            [CompletionResult]::new('--input', '--input', [CompletionResultType]::ParameterName, 'The recording')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, weight, addr')
            [CompletionResult]::new('--sort', '--sort', [CompletionResultType]::ParameterName, 'Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, weight, addr')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'Columns in this order: overhead, overhead_children, sample, period, and sort keys')
            [CompletionResult]::new('--fields', '--fields', [CompletionResultType]::ParameterName, 'Columns in this order: overhead, overhead_children, sample, period, and sort keys')
            [CompletionResult]::new('-g', '-g', [CompletionResultType]::ParameterName, 'The call tree: caller, callee or none, and the smallest percentage shown in it')
            [CompletionResult]::new('--call-graph', '--call-graph', [CompletionResultType]::ParameterName, 'The call tree: caller, callee or none, and the smallest percentage shown in it')
            [CompletionResult]::new('--percent-limit', '--percent-limit', [CompletionResultType]::ParameterName, 'Leave out rows, and branches of the tree, below this percentage')
            [CompletionResult]::new('--percentage', '--percentage', [CompletionResultType]::ParameterName, 'Percentages of all samples (absolute) or of those that the filters left (relative)')
            [CompletionResult]::new('--max-rows', '--max-rows', [CompletionResultType]::ParameterName, 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]')
            [CompletionResult]::new('--top', '--top', [CompletionResultType]::ParameterName, 'Rows in the text; 0 shows all [default: 20; all with -t, --csv and --json]')
            [CompletionResult]::new('--max-stack', '--max-stack', [CompletionResultType]::ParameterName, 'Longest call chain; what lies further out is left out')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('--comms', '--comms', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Only these programs and libraries')
            [CompletionResult]::new('--dsos', '--dsos', [CompletionResultType]::ParameterName, 'Only these programs and libraries')
            [CompletionResult]::new('-S', '-S ', [CompletionResultType]::ParameterName, 'Only these functions')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'Only these functions')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Only these processes')
            [CompletionResult]::new('--tid', '--tid', [CompletionResultType]::ParameterName, 'Only these threads')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%')
            [CompletionResult]::new('--time-quantum', '--time-quantum', [CompletionResultType]::ParameterName, 'Length of a slice for the sort key time, in milliseconds')
            [CompletionResult]::new('-t', '-t', [CompletionResultType]::ParameterName, 'Print fields with this between them and nothing else')
            [CompletionResult]::new('--field-separator', '--field-separator', [CompletionResultType]::ParameterName, 'Print fields with this between them and nothing else')
            [CompletionResult]::new('-w', '-w', [CompletionResultType]::ParameterName, 'Widths of the columns')
            [CompletionResult]::new('--column-widths', '--column-widths', [CompletionResultType]::ParameterName, 'Widths of the columns')
            [CompletionResult]::new('--symfs', '--symfs', [CompletionResultType]::ParameterName, 'A folder that stands for / of the recorded machine')
            [CompletionResult]::new('--kallsyms', '--kallsyms', [CompletionResultType]::ParameterName, 'A copy of the recorded machine''s /proc/kallsyms')
            [CompletionResult]::new('-k', '-k', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('--vmlinux', '--vmlinux', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('-G', '-G ', [CompletionResultType]::ParameterName, 'The call tree from the caller down')
            [CompletionResult]::new('--inverted', '--inverted', [CompletionResultType]::ParameterName, 'The call tree from the caller down')
            [CompletionResult]::new('--children', '--children', [CompletionResultType]::ParameterName, 'Count what functions called as theirs too (default with call chains)')
            [CompletionResult]::new('--no-children', '--no-children', [CompletionResultType]::ParameterName, 'Only what functions cost themselves')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Show the number of samples')
            [CompletionResult]::new('--show-nr-samples', '--show-nr-samples', [CompletionResultType]::ParameterName, 'Show the number of samples')
            [CompletionResult]::new('--show-total-period', '--show-total-period', [CompletionResultType]::ParameterName, 'Show the sum of periods')
            [CompletionResult]::new('--header', '--header', [CompletionResultType]::ParameterName, 'Show what the recording says of itself first')
            [CompletionResult]::new('--header-only', '--header-only', [CompletionResultType]::ParameterName, 'Show only what the recording says of itself')
            [CompletionResult]::new('--inline', '--inline', [CompletionResultType]::ParameterName, 'Find inlined functions and lines (default)')
            [CompletionResult]::new('--no-inline', '--no-inline', [CompletionResultType]::ParameterName, 'Names from symbol tables only')
            [CompletionResult]::new('--no-demangle', '--no-demangle', [CompletionResultType]::ParameterName, 'Names as the compiler wrote them')
            [CompletionResult]::new('--collapse-recursion', '--collapse-recursion', [CompletionResultType]::ParameterName, 'Join direct recursion into one branch of the tree')
            [CompletionResult]::new('--group', '--group', [CompletionResultType]::ParameterName, 'Print the members of a group of events side by side')
            [CompletionResult]::new('--stdio', '--stdio', [CompletionResultType]::ParameterName, 'Print plain text, on a terminal too')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print the table as CSV')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Do not keep results for the next time')
            [CompletionResult]::new('--debuginfod', '--debuginfod', [CompletionResultType]::ParameterName, 'Ask the servers in DEBUGINFOD_URLS for missing files')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Do not say what is not an error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Do not say what is not an error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;annotate' {
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'The recording; `-` is standard input [default: perf.data]')
            [CompletionResult]::new('--input', '--input', [CompletionResultType]::ParameterName, 'The recording; `-` is standard input [default: perf.data]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'The function')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'The function')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Only functions of these programs and libraries')
            [CompletionResult]::new('--dsos', '--dsos', [CompletionResultType]::ParameterName, 'Only functions of these programs and libraries')
            [CompletionResult]::new('--dso', '--dso', [CompletionResultType]::ParameterName, 'Only functions of these programs and libraries')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('--comms', '--comms', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Only these processes')
            [CompletionResult]::new('--tid', '--tid', [CompletionResultType]::ParameterName, 'Only these threads')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%')
            [CompletionResult]::new('--functions', '--functions', [CompletionResultType]::ParameterName, 'How many functions, where none is named; 0 shows all')
            [CompletionResult]::new('--percent-limit', '--percent-limit', [CompletionResultType]::ParameterName, 'Leave out functions below this percentage of the event')
            [CompletionResult]::new('--percent-type', '--percent-type', [CompletionResultType]::ParameterName, 'What percentages are parts of: the function or all samples, by period or by number')
            [CompletionResult]::new('--max-rows', '--max-rows', [CompletionResultType]::ParameterName, 'Rows of each function, around its hottest; 0 shows all')
            [CompletionResult]::new('-M', '-M ', [CompletionResultType]::ParameterName, 'How x86 instructions are written: att or intel')
            [CompletionResult]::new('--disassembler-style', '--disassembler-style', [CompletionResultType]::ParameterName, 'How x86 instructions are written: att or intel')
            [CompletionResult]::new('--symfs', '--symfs', [CompletionResultType]::ParameterName, 'A folder that stands for / of the recorded machine, for programs and sources')
            [CompletionResult]::new('--kallsyms', '--kallsyms', [CompletionResultType]::ParameterName, 'A copy of the recorded machine''s /proc/kallsyms')
            [CompletionResult]::new('--kcore', '--kcore', [CompletionResultType]::ParameterName, 'A copy of the recorded machine''s /proc/kcore')
            [CompletionResult]::new('-k', '-k', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('--vmlinux', '--vmlinux', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Show the number of samples too')
            [CompletionResult]::new('--show-nr-samples', '--show-nr-samples', [CompletionResultType]::ParameterName, 'Show the number of samples too')
            [CompletionResult]::new('--asm-raw', '--asm-raw', [CompletionResultType]::ParameterName, 'Show the bytes of instructions')
            [CompletionResult]::new('--no-asm-raw', '--no-asm-raw', [CompletionResultType]::ParameterName, 'Do not show the bytes of instructions (default)')
            [CompletionResult]::new('--source', '--source', [CompletionResultType]::ParameterName, 'Show source lines between the instructions (default)')
            [CompletionResult]::new('--no-source', '--no-source', [CompletionResultType]::ParameterName, 'Only instructions')
            [CompletionResult]::new('--source-only', '--source-only', [CompletionResultType]::ParameterName, 'Only source lines')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Write the file''s name before each line''s number')
            [CompletionResult]::new('--print-line', '--print-line', [CompletionResultType]::ParameterName, 'Write the file''s name before each line''s number')
            [CompletionResult]::new('-P', '-P ', [CompletionResultType]::ParameterName, 'Do not shorten paths of source files')
            [CompletionResult]::new('--full-paths', '--full-paths', [CompletionResultType]::ParameterName, 'Do not shorten paths of source files')
            [CompletionResult]::new('--stdio', '--stdio', [CompletionResultType]::ParameterName, 'Print plain text (the default)')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Do not keep results for the next time')
            [CompletionResult]::new('--debuginfod', '--debuginfod', [CompletionResultType]::ParameterName, 'Ask the servers in DEBUGINFOD_URLS for missing files')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Do not say what is not an error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Do not say what is not an error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;script' {
            [CompletionResult]::new('-i', '-i', [CompletionResultType]::ParameterName, 'The recording')
            [CompletionResult]::new('--input', '--input', [CompletionResultType]::ParameterName, 'The recording')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'What is printed; +NAME and -NAME change the usual choice')
            [CompletionResult]::new('--fields', '--fields', [CompletionResultType]::ParameterName, 'What is printed; +NAME and -NAME change the usual choice')
            [CompletionResult]::new('--max-stack', '--max-stack', [CompletionResultType]::ParameterName, 'Longest call chain')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only this time: FROM,TO in seconds of the recording''s clock, or 10%-20%')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('--comms', '--comms', [CompletionResultType]::ParameterName, 'Only threads with these names')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Only these processes')
            [CompletionResult]::new('--tid', '--tid', [CompletionResultType]::ParameterName, 'Only these threads')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples of these CPUs, such as 0-3,8')
            [CompletionResult]::new('--symfs', '--symfs', [CompletionResultType]::ParameterName, 'A folder that stands for / of the recorded machine')
            [CompletionResult]::new('--kallsyms', '--kallsyms', [CompletionResultType]::ParameterName, 'A copy of the recorded machine''s /proc/kallsyms')
            [CompletionResult]::new('-k', '-k', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('--vmlinux', '--vmlinux', [CompletionResultType]::ParameterName, 'The recorded kernel''s file with symbols')
            [CompletionResult]::new('-G', '-G ', [CompletionResultType]::ParameterName, 'Leave out callers')
            [CompletionResult]::new('--hide-call-graph', '--hide-call-graph', [CompletionResultType]::ParameterName, 'Leave out callers')
            [CompletionResult]::new('--ns', '--ns', [CompletionResultType]::ParameterName, 'Times to the nanosecond')
            [CompletionResult]::new('--header', '--header', [CompletionResultType]::ParameterName, 'Show what the recording says of itself first')
            [CompletionResult]::new('--inline', '--inline', [CompletionResultType]::ParameterName, 'Find inlined functions (default where stacks were copied, as perf does)')
            [CompletionResult]::new('--no-inline', '--no-inline', [CompletionResultType]::ParameterName, 'Names from symbol tables only')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print one JSON object a line')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object a line')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Do not keep results for the next time')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;reserve' {
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'The lock file to use instead of PCP''s')
            [CompletionResult]::new('-D', '-D ', [CompletionResultType]::ParameterName, 'Stay in the foreground (the default)')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Go to the background once the lock is held; a failure is reported before that')
            [CompletionResult]::new('--create', '--create', [CompletionResultType]::ParameterName, 'Create the lock file if it is missing, for an agent that starts later (needs root in PCP''s directory)')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Print the version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print the version')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'pmc;list' {
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'Show the request to the kernel, other names, units, and the fields of tracepoints')
            [CompletionResult]::new('--long', '--long', [CompletionResultType]::ParameterName, 'Show the request to the kernel, other names, units, and the fields of tracepoints')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'Print one JSON document (its `version` changes when a field changes its meaning)')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON document (its `version` changes when a field changes its meaning)')
            [CompletionResult]::new('--names', '--names', [CompletionResultType]::ParameterName, 'Print names only, one a line, untried: for the shells'' completion')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
