
# --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---

# Prints the candidates for an event list: each is the list so far with its last item completed.
_pmc_events() {
    local list=$1 head="" name pmu
    # A pmu/terms/ that is closed is behind us.
    while [[ $list =~ ^[^/]*/[^/]*/ ]]; do
        head+=${BASH_REMATCH[0]}
        list=${list#"${BASH_REMATCH[0]}"}
    done
    if [[ $list == */* ]]; then
        pmu=${list%%/*}
        pmu=/sys/bus/event_source/devices/${pmu##*[,\{]}
        head+=${list%"${list##*[/,]}"}
        for name in "$pmu"/events/* "$pmu"/format/*; do
            case $name in
                *.unit | *.scale | *.snapshot | *.per-pkg | */\*) ;;
                */format/*) printf '%s%s=\n' "$head" "${name##*/}" ;;
                *) printf '%s%s\n' "$head" "${name##*/}" ;;
            esac
        done
    else
        head+=${list%"${list##*[,\{]}"}
        for name in /sys/bus/event_source/devices/*/; do
            name=${name%/}
            printf '%s%s/\n' "$head" "${name##*/}"
        done
        while IFS= read -r name; do
            printf '%s%s\n' "$head" "$name"
        done < <("${COMP_WORDS[0]}" list --names 2>/dev/null)
    fi
}

# Prints the candidates for a list of metrics and of groups of them.
_pmc_metrics() {
    local head=${1%"${1##*,}"} name
    while IFS= read -r name; do
        printf '%s%s\n' "$head" "$name"
    done < <("${COMP_WORDS[0]}" list --names metric 2>/dev/null)
}

# Prints the candidates for a comma-separated list of what stands in these folders of /proc.
_pmc_numbers() {
    local head=${1%"${1##*,}"} folder
    shift
    for folder; do
        printf '%s%s\n' "$head" "${folder##*/}"
    done
}

# Completes the value under the cursor; fails where the parser's own completion knows enough.
_pmc_value() {
    local line=${COMP_LINE:0:COMP_POINT} word before words command="" option value quote="" candidates
    [[ $line != *" -- "* ]] || return 1
    word=${line##*[[:blank:]]}
    before=${line%"$word"}
    read -ra words <<<"$before"
    for option in "${words[@]:1}"; do
        [[ $option == -* ]] || { command=$option; break; }
    done
    case $word in
        --*=*) option=${word%%=*} value=${word#*=} ;;
        -[!-]?*) option=${word:0:2} value=${word:2} ;;
        *) option=${words[-1]} value=$word ;;
    esac
    [[ $option != -[!-]* ]] || option=-${option: -1} # -ae is -a -e
    if [[ $value == [\"\']* ]]; then
        quote=${value:0:1}
        value=${value:1}
    fi
    case $command:$option in
        @EVENT@) candidates=$(_pmc_events "$value") ;;
        @METRICS@) candidates=$(_pmc_metrics "$value") ;;
        @PID@) candidates=$(_pmc_numbers "$value" /proc/[0-9]*) ;;
        @TID@) candidates=$(_pmc_numbers "$value" /proc/[0-9]*/task/[0-9]*) ;;
        *) return 1 ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$value")
    # Outside quotes bash sees words end at a colon or an equals sign, and replaces only what follows the last one.
    if [[ -z $quote ]]; then
        local seen=${value%"${value##*[:=]}"}
        COMPREPLY=("${COMPREPLY[@]#"$seen"}")
    elif [[ $option != --* && $word == -* ]]; then
        COMPREPLY=("${COMPREPLY[@]/#/$option$quote}")
    fi
    if [[ -z $quote && $word == -[!-]* ]]; then
        COMPREPLY=("${COMPREPLY[@]/#/$option}")
    fi
    compopt -o nospace 2>/dev/null
    return 0
}

# Completes what stands behind `--`: a program, then what its own completion offers (or files).
_pmc_command() {
    local line=${COMP_LINE:0:COMP_POINT} word at
    [[ $line == *" -- "* ]] || return 1
    word=${line##*[[:blank:]]}
    if [[ ${line#*" -- "} == "$word" ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$word" | sort -u)
    elif declare -F _command_offset >/dev/null; then
        for ((at = 1; at < COMP_CWORD; at++)); do
            [[ ${COMP_WORDS[at]} != -- ]] || break
        done
        _command_offset $((at + 1))
    fi
    return 0
}

_pmc_with_values() {
    COMPREPLY=()
    _pmc_command || _pmc_value || _pmc "$@"
}

complete -F _pmc_with_values -o nosort -o bashdefault -o default pmc
