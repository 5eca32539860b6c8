#!/bin/sh
# forks.sh TIMES: so many rounds of a shell's daily work, each three forks, one of which becomes another program.
i=0
while [ "$i" -lt "$1" ]; do
    x=$(echo "$i" | cat)
    i=$((i + ${#x} / ${#x}))
done
