# usage: sqlite.sh STATEMENTS
# Four shells of SQLite execute the statements in one table at the same time.
sqlite3 data.db 'create table t (n)'
for i in 1 2 3 4; do sqlite3 data.db "$1" & done
wait
sqlite3 data.db 'select sum(n), max(n), count(distinct n) from t'
sqlite3 data.db 'no such thing'; echo $?
