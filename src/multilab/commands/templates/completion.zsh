#compdef multilab
_multilab_complete() {
    local -a found open closed
    found=("${(@f)$(${words[1]} completion candidates "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)}")
    open=(${(M)found:#(*[=.]|*\[*)})
    closed=(${found:#(*[=.]|*\[*)})
    (( $#open )) && compadd -Q -S '' -- $open
    (( $#closed )) && compadd -Q -- $closed
    (( $#open + $#closed )) || _files
}
compdef _multilab_complete multilab
