# What scripts/demo and scripts/test have in common: `step WHAT COMMAND...` runs a command as one line with the time it
# took; what it says goes to the file $log, the end of which is shown when it fails.
# shellcheck shell=bash disable=SC2154

step() {
    local what=$1 begin=$SECONDS status=0
    shift
    printf '%-50s' "$what"
    echo "== $what: $*" >>"$log"
    "$@" >>"$log" 2>&1 </dev/null || status=$?
    if ((status)); then
        printf 'failed\n'
        tail -n 30 "$log" >&2
        echo "The whole log is $log." >&2
        exit "$status"
    fi
    printf '%4d s\n' $((SECONDS - begin))
}

new_log() { # file
    mkdir -p "${1%/*}"
    log=$1
    : >"$log"
}
