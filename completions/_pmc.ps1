# PowerShell completion of pmc. pmc itself knows the words: `pmc complete`.

Register-ArgumentCompleter -Native -CommandName pmc -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | ForEach-Object { $_.Extent.Text })
    $before = @($words | Select-Object -Skip 1)
    if ($wordToComplete) { $before = @($before | Select-Object -SkipLast 1) }
    # Without an answer, PowerShell completes names of files.
    & $words[0] complete -- @before $wordToComplete 2>$null | Where-Object { -not $_.StartsWith(':') } | ForEach-Object {
        $word, $about = $_.Split("`t")
        $about = if ($about) { $about } else { $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $about)
    }
}
