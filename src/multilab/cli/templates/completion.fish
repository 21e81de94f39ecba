function __multilab_complete
    set -l tokens (commandline -opc)
    _MULTILAB_COMPLETE=fish_complete MULTILAB_LINE=(commandline -cp) $tokens[1] 2>/dev/null
end
complete -c multilab -f -a '(__multilab_complete)'
complete -c multilab -F -n '__fish_seen_subcommand_from check add audit predict monitor explain'
