
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

# The candidates for a list of metrics and of groups of them.
fn pmc-metrics {|pmc list|
    var head = (pmc-head '.*,' $list)
    try { (external $pmc) list --names metric 2>/dev/null | from-lines | each {|name| put $head$name } } catch { }
}

fn pmc-numbers {|list @folders|
    var head = (pmc-head '.*,' $list)
    for folder $folders { put $head(path:base $folder) }
}

fn pmc-value {|pmc key list|
    if (has-value [@EVENT@] $key) {
        pmc-events $pmc $list
    } elif (has-value [@METRICS@] $key) {
        pmc-metrics $pmc $list
    } elif (has-value [@PID@] $key) {
        pmc-numbers $list /proc/*[set:0123456789]
    } elif (has-value [@TID@] $key) {
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
