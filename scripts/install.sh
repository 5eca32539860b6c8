#!/bin/sh
# usage: ./install.sh [--remove] [PREFIX]
#
# Installs gotrace, as it stands beside this script, below PREFIX (/usr/local), or removes what that has put there. What
# is here works where it is, too: bin/gotrace finds lib/libgotrace.so beside it. DESTDIR goes before PREFIX.
set -eu
given=$*
remove=
[ "${1:-}" != --remove ] || { remove=yes && shift; }
if [ $# -gt 1 ] || case ${1:-} in -*) true ;; *) false ;; esac; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
to=${DESTDIR:-}${1:-/usr/local}
cd "$(dirname "$0")"
# Each program would fail to start that has a library in LD_PRELOAD which this system's libc is too old for.
if [ -z "$remove${DESTDIR:-}" ]; then
    if ! said=$(LD_PRELOAD=./lib/libgotrace.so GOTRACE=off env true 2>&1) || [ -n "$said" ]; then
        echo "install.sh: nothing is installed, since programs here cannot have the library: $said" >&2
        exit 1
    fi
fi
{ mkdir -p "$to" && [ -w "$to" ] && { [ ! -e "$to/bin" ] || [ -w "$to/bin" ]; }; } 2>/dev/null || {
    echo "install.sh: $to cannot be written to. Run: sudo $0${given:+ $given}, or give a folder of yours as PREFIX" >&2
    exit 1
}
find bin lib include share -type f | while read -r file; do
    if [ "$remove" ]; then
        rm -f "$to/$file"
    else
        mkdir -p "$to/${file%/*}"
        cp "$file" "$to/$file.new" # a library in use keeps its file
        mv "$to/$file.new" "$to/$file"
    fi
done
# Folders that only we use; bin, lib, include, share and share/man are the system's.
if [ "$remove" ]; then
    find share -depth -mindepth 1 -type d ! -path share/man | while read -r folder; do
        rmdir "$to/$folder" 2>/dev/null || true
    done
fi
