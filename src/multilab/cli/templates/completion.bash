_multilab_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" full cut
    full="${line##*[[:space:]]}"
    # Bash splits words at the characters of COMP_WORDBREAKS (= and :) and replaces only what follows the last of them.
    cut="${full%"$2"}"
    local IFS=$'\n'
    COMPREPLY=($(_MULTILAB_COMPLETE=bash_complete MULTILAB_LINE="$line" "$1" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    case "${COMPREPLY[*]}" in *[=.]|*\[*) compopt -o nospace ;; esac
}
complete -o default -F _multilab_complete multilab
