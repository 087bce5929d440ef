# A MariaDB with the tables of the systems, and a site whose WP-CLI runs PHP on it.
guides=$PROJECT/tests/commands/guides
. "$PROJECT/tests/commands/guides/mariadb.sh"
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
# A PostgreSQL, which does not run as root. Its account reaches the directory.
as=()
if [ "$(id -u)" = 0 ]; then
    chmod o+x "$HOME"
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
mkdir postgres
[ ${#as[@]} = 0 ] || chown postgres postgres
versions=(/usr/lib/postgresql/*/bin)
(cd postgres && "${as[@]}" "${versions[-1]}/initdb" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 -D data > log)
(cd postgres && exec "${as[@]}" "${versions[-1]}/postgres" -D data -k "$PWD" -c listen_addresses= -c fsync=off 2>> log) &
psql() { command psql --host="$HOME/postgres" --username=postgres "$@"; }
until psql --quiet --command 'SELECT 1' > /dev/null 2>&1; do kill -0 $! || cat postgres/log; sleep 0.1; done
psql --quiet < "$guides/docs-migrating-postgres.sql"
