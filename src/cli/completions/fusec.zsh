_fusec() {
    local -a options
    local command=emit verb= argument
    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _describe -t commands command _fusec_commands
        _files -g '*.fuse'
        return
    fi
    if [[ $words[2] == help ]]; then
        _describe -t commands command _fusec_commands
        return
    fi
    if (( $+_fusec_verbs[$words[2]] )); then
        command=$words[2]
        shift words
        (( CURRENT-- ))
        if [[ -n $_fusec_verbs[$command] ]]; then
            if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
                compadd -- ${=_fusec_verbs[$command]}
                return
            fi
            verb=$words[2]
            shift words
            (( CURRENT-- ))
        fi
    fi
    _fusec_arguments "$command" "$verb"
    _arguments -s -S $options $argument
}
if [[ $funcstack[1] == _fusec ]]; then _fusec "$@"; else compdef _fusec fusec; fi
