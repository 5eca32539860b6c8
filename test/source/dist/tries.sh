# usage: tries.sh NAME-OF-THE-ARCHIVE
# What the archive has to do on another system. The programs are linked as the archive's are. glibc: the unit test of the
# layouts that we know.
timeout 20 ./glibc
timeout 20 env LD_PRELOAD=$PWD/$1/lib/libgotrace.so GOTRACE_OUTPUT=/tmp/true.out true
timeout 20 env LD_PRELOAD=$PWD/$1/lib/libgotrace.so GOTRACE_OUTPUT=/tmp/threads.out ./threads 3
cd $1
timeout 60 ./bin/gotrace -o /tmp/truth.out ../truth >/dev/null
for trace in true threads truth; do timeout 20 ./bin/gotrace info --check /tmp/$trace.out; done
timeout 20 ./bin/gotrace top /tmp/truth.out
timeout 20 ./bin/gotrace why /tmp/truth.out
./install.sh
gotrace --version >/tmp/version
./install.sh --remove
cd ..
apt-get -qq update
apt-get -qq install -y --no-install-recommends python3-venv >/dev/null
python3 -m venv v
v/bin/pip install -q --no-index --disable-pip-version-check gotrace-*.whl
v/bin/gotrace record -q -o /tmp/pages.out -- v/bin/python scripts/example/pages.py
v/bin/gotrace info --check /tmp/pages.out
v/bin/gotrace why /tmp/pages.out
cat /tmp/version
