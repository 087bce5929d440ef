# A MariaDB in this directory, and mysql, which asks it. One that starts removes the temporary tables of all others in its TMPDIR.
mkdir mariadb.tmp
account=$(id -un)
TMPDIR=$PWD/mariadb.tmp mariadb-install-db --no-defaults --datadir="$PWD/mariadb" --user="$account" --auth-root-authentication-method=normal --skip-test-db > mariadb.log
TMPDIR=$PWD/mariadb.tmp mariadbd --no-defaults --datadir="$PWD/mariadb" --socket="$PWD/mariadb.sock" --user="$account" --skip-networking 2>> mariadb.log &
mysql() { mariadb --no-defaults --socket="$HOME/mariadb.sock" --user=root "$@"; }
until mysql --execute 'SELECT 1' > /dev/null 2>&1; do kill -0 $! || cat mariadb.log; sleep 0.1; done
