# elvish completion of pmc. pmc itself knows the words: `pmc complete`.

use str

set edit:completion:arg-completer[pmc] = {|@words|
    var answer = []
    try {
        set answer = [((external $words[0]) complete -- (all $words[1..]) 2>/dev/null | from-lines)]
    } catch { }
    if (or (eq $answer []) (eq $answer [:files])) {
        edit:complete-filename $words[-1]
    } elif (str:has-prefix $answer[0] ':command ') {
        var count = (num (str:trim-prefix $answer[0] ':command '))
        edit:complete-sudo sudo (all $words[(- (count $words) $count)..])
    } else {
        var suffix = ' '
        if (eq $answer[0] :list) {
            set suffix = ''
            set answer = $answer[1..]
        }
        for line $answer {
            var word about = (str:split "\t" $line)
            edit:complex-candidate $word &display=$word'  '$about &code-suffix=$suffix
        }
    }
}
