
    # --- what the parser cannot know: this machine's events, its PMUs' terms, and what runs now ---
    $words = @($commandAst.CommandElements | ForEach-Object { $_.Extent.Text })
    $option = if ($wordToComplete) { $words[-2] } else { $words[-1] }
    $devices = '/sys/bus/event_source/devices'
    $head = ''
    $found = switch -CaseSensitive ("$($words[1]):$option") {
        { $_ -cin @EVENT@ } {
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
        { $_ -cin @METRICS@ } {
            $head = $wordToComplete -replace '[^,]*$'
            & $words[0] list --names metric 2>$null
        }
        { $_ -cin @PID@ } {
            $head = $wordToComplete -replace '[^,]*$'
            Get-ChildItem /proc -Name | Where-Object { $_ -match '^\d+$' }
        }
        { $_ -cin @TID@ } {
            $head = $wordToComplete -replace '[^,]*$'
            Get-ChildItem /proc/*/task/* -Name -ErrorAction Ignore | ForEach-Object { Split-Path $_ -Leaf } | Where-Object { $_ -match '^\d+$' }
        }
    }
    if ($found) {
        return $found | ForEach-Object { "$head$_" } | Where-Object { $_.StartsWith($wordToComplete) } |
            ForEach-Object { [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_) }
    }

