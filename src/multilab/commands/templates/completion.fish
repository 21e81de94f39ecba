function __multilab_complete
    set -l tokens (commandline -opc)
    $tokens[1] completion candidates (commandline -cp) 2>/dev/null
end
complete -c multilab -f -a '(__multilab_complete)'
complete -c multilab -F -n '__fish_seen_subcommand_from check'
