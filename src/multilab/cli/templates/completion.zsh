#compdef multilab
_multilab_complete() {
    local -a found open closed
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    found=("${(@f)$(_MULTILAB_COMPLETE=zsh_complete MULTILAB_LINE="$line" ${words[1]} 2>/dev/null)}")
    open=(${(M)found:#(*[=.]|*\[*)})
    closed=(${found:#(*[=.]|*\[*)})
    (( $#open )) && compadd -Q -S '' -- $open
    (( $#closed )) && compadd -Q -- $closed
    (( $#open + $#closed )) || _files
}
compdef _multilab_complete multilab
