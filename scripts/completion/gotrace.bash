# bash completion for gotrace(1)

# The words that complete $1, out of those that follow.
_gotrace_words() {
    local word=$1
    shift
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$word")
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}

_gotrace_files() {
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The value of an option, as --option=value, which bash splits into three words, or as two.
_gotrace_value() { # option, value so far; false: it is no option with a value
    case $1 in
    -o | --output) _gotrace_files "$2" ;;
    -F | --format) _gotrace_words "$2" go1.5 go1.7 go1.8 go1.9 go1.10 go1.11 go1.19 go1.21 go1.22 go1.23 go1.25 go1.26 ;;
    -s | --syscalls) _gotrace_words "$2" all blocking none ;;
    --live) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -W "on off" -- "$2" && compgen -d -- "$2") ;;
    --start) _gotrace_words "$2" auto manual ;;
    --names) _gotrace_words "$2" now later ;;
    --signal) _gotrace_words "$2" "$(compgen -A signal)" ;;
    --kind) _gotrace_words "$2" all sync network syscall sched sleep other unseen cpu ;;
    --go | --diff) _gotrace_files "$2" ;;
    --to) [[ ${COMP_WORDS[1]} != export ]] || _gotrace_words "$2" perfetto firefox chrome pprof folded flame ;;
    --debug-dir | --clean) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    --around) _gotrace_words "$2" longest log: task: ;;
    --frames | --skip | --focus | --thread | --from | --task | --idle | --margin | --threads) COMPREPLY=() ;;
    --syscall-min | --max-processes | --max-size | --max-mem | --delay | --duration | --ring | --rotate | --keep | --cpu-hz | --cpu | --hold-min | --hang | --last | --http | -n) COMPREPLY=() ;;
    *) return 1 ;;
    esac
}

# Where the program's name is in COMP_WORDS, or nothing.
_gotrace_program() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) echo $((i + 1)) && return ;;
        -o | -F | -s) ((i++)) ;;
        --*) [[ ${COMP_WORDS[i + 1]} == = ]] && ((i += 2)) ;;
        -*) ;;
        *) echo "$i" && return ;;
        esac
    done
}

# Options if the word begins as one, else files.
_gotrace_options_or_files() { # word, options
    if [[ $1 == -* ]]; then
        _gotrace_words "$@"
    else
        _gotrace_files "$1"
    fi
}

_gotrace_commands="view report info top why sql export recover cut convert merge symbolize stacks attach detach start stop snapshot doctor"

_gotrace_process() { # word
    if [[ $1 == -* && ${COMP_WORDS[1]} == start ]]; then
        _gotrace_words "$1" --cpu= --help
    elif ((COMP_CWORD == 2)) || [[ ${COMP_WORDS[1]} == start ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--help $(cd /proc && echo [0-9]*)" -- "$1")
    elif [[ ${COMP_WORDS[1]} == snapshot ]]; then
        _gotrace_files "$1"
    fi
}

_gotrace_attach() { # word
    if [[ $1 == -* ]]; then
        _gotrace_words "$1" --output= --format= --syscalls= --syscall-min= --no-heap --no-children --all-children --names= --max-size= --max-mem= \
            --start= --duration= --ring= --rotate= --keep= --hold-min= --verbose --help
    else
        mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$1")
    fi
}

# A process or a core file, then the executable.
_gotrace_stacks() { # word
    if [[ $1 == -* ]]; then
        _gotrace_words "$1" --json --last= --verbose --help
    else
        _gotrace_files "$1"
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$1")
    fi
}

_gotrace_first() { # word
    compopt -o filenames
    mapfile -t COMPREPLY < <(
        ((COMP_CWORD == 1)) && compgen -W "$_gotrace_commands help" -- "$1"
        [[ $1 == */* ]] || compgen -A command -- "$1"
        compgen -f -- "$1"
    )
}

_gotrace_run() { # word
    if [[ -n $(_gotrace_program) ]]; then
        _gotrace_files "$1"
    elif [[ $1 == -* ]]; then
        _gotrace_words "$1" --output= --format= --syscalls= --syscall-min= --no-heap --no-children --all-children --max-processes= --names= --max-size= \
            --max-mem= --start= --delay= --duration= --signal= --ring= --rotate= --keep= --live= --sched --cpu-hz= --hold-min= --hang= --quiet --family --wait --force --help --version
    else
        _gotrace_first "$1"
    fi
}

_gotrace() {
    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    _gotrace_value "$option" "$cur" && return
    case $((COMP_CWORD > 1))${COMP_WORDS[1]} in
    1help) _gotrace_words "$cur" "$_gotrace_commands" ;;
    1view) _gotrace_options_or_files "$cur" --go= --http= --no-browser --from= --to= --at= --whole --help ;;
    1report) _gotrace_options_or_files "$cur" --output= --from= --to= --whole --as= --help ;;
    1doctor) _gotrace_options_or_files "$cur" --json --help ;;
    1info) _gotrace_options_or_files "$cur" --check -n --thread= --idle= --wide --json --help ;;
    1top) _gotrace_options_or_files "$cur" --by-thread --cum --wakers --holders --by-lock --wakeups --preempted --cpu --kind= -n --frames= \
        --skip= --focus= --thread= --from= --to= --task= --wide --idle= --json --help ;;
    1sql) _gotrace_options_or_files "$cur" --json --csv --output= --help ;;
    1why) _gotrace_options_or_files "$cur" --from= --to= --task= --thread= --as= --idle= --skip= --frames= --wide --json --timeline --page= --help ;;
    1export) _gotrace_options_or_files "$cur" --to= --output= --kind= --wakers --by-thread --unended --diff= --min-width= --help ;;
    1recover) _gotrace_options_or_files "$cur" --output= --clean= --help ;;
    1cut) _gotrace_options_or_files "$cur" --from= --to= --around= --margin= --threads= --thorough --output= --help ;;
    1convert) _gotrace_options_or_files "$cur" --format= --holds --output= --help ;;
    1merge) _gotrace_options_or_files "$cur" --format= --mark= --output= --help ;;
    1symbolize) _gotrace_options_or_files "$cur" --debug-dir= --debuginfod --perf-map= --output= --help ;;
    1stacks) _gotrace_stacks "$cur" ;;
    1start | 1stop | 1snapshot | 1detach) _gotrace_process "$cur" ;;
    1attach) _gotrace_attach "$cur" ;;
    *) _gotrace_run "$cur" ;;
    esac
}

complete -F _gotrace gotrace
