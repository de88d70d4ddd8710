
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

