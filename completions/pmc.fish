# fish completion of pmc. pmc itself knows the words: `pmc complete`.

function __pmc_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct | string trim -c '"\'')
    # Without an answer, complete names of files.
    set -l answer (command $words[1] complete -- $words[2..] "$word" 2>/dev/null)
    or set answer :files
    switch "$answer[1]"
        case '' :files
            set -l option (string match -r -- '^--[^=]*=' "$word")
            printf "$option%s\n" (__fish_complete_path (string replace -r -- '^--[^=]*=' '' "$word"))
        case ':command *'
            set -a words "$word"
            set -l first (math (count $words) + 1 - (string replace ':command ' '' $answer[1]))
            complete -C (string join ' ' -- (string escape -- $words[$first..-2]) (commandline -ct))
        case '*'
            string match -v -- :list $answer
    end
end

complete -c pmc -f -a '(__pmc_complete)'
