# usage: installed.sh INSTALL TYPED AWAY
# Installs gotrace by the first command, records with it, executes the lines TYPED, and undoes the installation.
there() { find /usr /opt /etc -xdev -not -path '/usr/share/python3*' -not -name __pycache__ -not -name '*.pyc' 2>/dev/null | sort; }
there >before
eval "$1 || exit" >/dev/null
for gotrace in gotrace 'gotrace record'; do
    $gotrace -q -o t.out -- ./app >/dev/null
    gotrace info --check t.out
    gotrace why t.out
done
gotrace -q -o t.out -- python3 app.py >/dev/null
gotrace why t.out
eval "$2"
# another user, who can write nowhere but to /tmp
gotrace=$(command -v gotrace)
sudo unshare --mount bash -euc 'mount --bind /tmp /tmp; mount -o remount,ro,bind /; exec runuser -u nobody -- "$@"' bash \
    "$gotrace" record -q -o /tmp/nobody.out -- ./app >/dev/null
sudo "$gotrace" info --check /tmp/nobody.out
sudo rm /tmp/nobody.out
eval "$3"
there | diff before -
