# --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---

_pmc_events() {
    local pmu file
    local -a names terms
    # A pmu/terms/ that is closed is behind us.
    while compset -P '[^/]#/[^/]#/'; do :; done
    if [[ $PREFIX == */* ]]; then
        pmu=/sys/bus/event_source/devices/${${PREFIX%%/*}##*[,\{]}
        for file in $pmu/events/*(N); do
            [[ $file == *.(unit|scale|snapshot|per-pkg) ]] || names+=(${file:t})
        done
        terms=($pmu/format/*(N:t))
        compset -P '*[/,]'
        compadd -q -S , -a names
        compadd -S = -a terms
    else
        names=(${(f)"$(command pmc list --names 2>/dev/null)"})
        terms=(/sys/bus/event_source/devices/*(N:t))
        compset -P '*[,\{]'
        compadd -q -S , -a names
        compadd -S / -a terms
    fi
}

_pmc_metrics() {
    local -a names=(${(f)"$(command pmc list --names metric 2>/dev/null)"})
    compset -P '*,'
    compadd -q -S , -a names
}

_pmc_pids() {
    local -a numbers=(/proc/<->(N:t))
    compset -P '*,'
    compadd -q -S , -a numbers
}

_pmc_tids() {
    local -a numbers=(/proc/<->/task/<->(N:t))
    compset -P '*,'
    compadd -q -S , -a numbers
}

