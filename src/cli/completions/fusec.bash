# Adds the words that begin like the last item of the list in $word.
_fusec_add_words() {
    local list=${word%"${word##*,}"}
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -P "$list" -W "$1" -- "${word##*,}")
}

# Adds folders and the files that match a pattern.
_fusec_add_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
        compgen -d -- "$word"
        shopt -s extglob
        compgen -f -X "!$1" -- "$word" | while IFS= read -r file; do [ -d "$file" ] || printf '%s\n' "$file"; done)
}

_fusec() {
    local word=$2 before=$3 command=emit verb='' place
    COMPREPLY=()
    # Bash splits --option=value into three words.
    if [ "$word" = = ]; then word=''; fi
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ "$COMP_CWORD" = 1 ]; then
        case $word in
        -*) ;;
        *) _fusec_add_words "$_fusec_commands help version"; _fusec_add_files '*.fuse'; return ;;
        esac
    else
        for place in $_fusec_commands; do
            if [ "$place" = "${COMP_WORDS[1]}" ]; then command=$place; fi
        done
        if [ "${COMP_WORDS[1]}" = help ]; then _fusec_add_words "$_fusec_commands"; return; fi
        if [ "$COMP_CWORD" -gt 2 ]; then verb=${COMP_WORDS[2]}; fi
    fi
    if _fusec_value "$command" "$before"; then return; fi
    case $word in
    -*) _fusec_add_words "$(_fusec_options "$command" "$verb")" ;;
    *) _fusec_argument "$command" "$verb" ;;
    esac
}
complete -F _fusec fusec
