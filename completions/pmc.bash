# bash completion of pmc. pmc itself knows the words: `pmc complete`.

_pmc() {
    local line=${COMP_LINE:0:COMP_POINT} words word quote="" answer at
    # bash splits words at `:` and `=` too.
    read -ra words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=("")
    word=${words[-1]}
    if [[ $word == [\"\']* ]]; then
        quote=${word:0:1}
        word=${word:1}
    fi
    COMPREPLY=()
    # Without an answer, bash completes names of files.
    answer=$("${words[0]}" complete -- "${words[@]:1:${#words[@]}-2}" "$word" 2>/dev/null) || return
    mapfile -t answer <<<"$answer"
    case ${answer[0]} in
        "" | :files) return ;;
        ":command 1") mapfile -t COMPREPLY < <(compgen -c -- "$word" | sort -u); return ;;
        :command*)
            declare -F _command_offset >/dev/null || return
            local first=${words[${#words[@]}-${answer[0]#:command }]}
            for ((at = COMP_CWORD; at > 1; at--)); do
                [[ ${COMP_WORDS[at]} != "$first" ]] || break
            done
            _command_offset "$at"
            return
            ;;
        :list) compopt -o nospace 2>/dev/null; answer=("${answer[@]:1}") ;;
    esac
    COMPREPLY=("${answer[@]%%$'\t'*}")
    # Outside quotes, bash replaces only what follows the last colon or equals sign.
    [[ -n $quote ]] || COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*[:=]}"}"}")
}

complete -F _pmc -o nosort -o bashdefault -o default pmc
