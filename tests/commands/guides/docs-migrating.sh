# A MariaDB with the tables of the systems, and a site whose WP-CLI runs PHP on it.
guides=$PROJECT/tests/commands/guides
account=$(id -un)
mariadb-install-db --no-defaults --datadir="$PWD/mariadb" --user="$account" --auth-root-authentication-method=normal --skip-test-db > mariadb.log
mariadbd --no-defaults --datadir="$PWD/mariadb" --socket="$PWD/mariadb.sock" --user="$account" --skip-networking 2>> mariadb.log &
mysql() { mariadb --no-defaults --socket="$HOME/mariadb.sock" --user=root "$@"; }
until mysql --execute 'SELECT 1' > /dev/null 2>&1; do kill -0 $! || cat mariadb.log; sleep 0.1; done
mysql < "$guides/docs-migrating.sql"
wp() {
    case "$*" in
        "eval-file "*) php "$guides/wordpress.php" "$2" ;;
        "user list --fields=ID,user_login,user_pass --format=csv")
            printf 'ID,user_login,user_pass\n7,carol,$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0\n'
            ;;
        *) return 1 ;;
    esac
}
