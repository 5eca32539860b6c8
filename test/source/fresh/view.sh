# usage: view.sh COMMAND
# The viewer is a page that a server makes: that the server answers is enough.
set -m
coproc bash -c "$1"
viewer=$COPROC_PID
head -n 1 <&"${COPROC[0]}"
kill -INT -- "-$viewer"
wait "$viewer"
test ! -e /usr/sbin/policy-rc.d
