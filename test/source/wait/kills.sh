# usage: kills.sh PROGRAM
# Kills two processes of prog/killed.c, which write to the folders 1 and 2, as soon as each is ready.
for i in 1 2; do
    mkdir $i
    "$1" $PWD/$i/journal wait > $i/ready &
    while ! grep -q ready $i/ready; do :; done
    kill -9 $!
    wait $!
done
true
