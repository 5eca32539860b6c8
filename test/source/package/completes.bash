# usage: bash completes.bash SCRIPT gotrace WORD…
# Prints what the script of bash completion offers for the last word.
compopt() { :; } # only while completing
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
complete -p gotrace >/dev/null && _gotrace
printf '%s\n' "${COMPREPLY[@]}"
