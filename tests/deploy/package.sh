#!/bin/bash
# Runs in a booted Debian: installs the packages given, uses, upgrades, removes and purges them.
set -euxo pipefail
# Commands find the configuration of the package: there is none in this directory.
config=/etc/countersign/config.toml
cd /packages
as_service() { runuser -u countersign -- countersign "$@"; }
ready() { timeout 30 sh -c 'until countersign health --ready 2>/dev/null; do sleep 0.1; done'; }

dpkg -i "$1"
ready
systemctl is-enabled countersign
process=$(systemctl show -P MainPID countersign)
test "$(stat -c %U "/proc/$process")" = countersign
grep -q 'NoNewPrivs:.1' "/proc/$process/status"
grep -q 'CapEff:.0000000000000000' "/proc/$process/status"
grep -q 'Max core file size  *0 ' "/proc/$process/limits"
test "$(stat -c '%U %a' /var/lib/countersign)" = 'countersign 700'
test "$(stat -c '%U %G %a %s' /etc/countersign/store_key)" = 'root countersign 640 32'
systemd-analyze security --no-pager --threshold=20 countersign
# A command that root runs before the first start leaves a store that the service can open.
systemctl stop countersign.socket countersign-admin.socket countersign
rm /var/lib/countersign/*
countersign consumer add --name Shop --key shop
for file in /var/lib/countersign/*; do test "$(stat -c '%U %a' "$file")" = 'countersign 600'; done
systemctl start countersign.socket countersign-admin.socket countersign
ready
as_service consumer show shop
# The key of the package is no reason for a warning, neither for root nor for the service.
for account in root countersign; do
    runuser -u $account -- countersign check 2>&1 | tee /tmp/checked || true
    ! grep store_key /tmp/checked
done
# Each link of the documents leads to a file of the package.
(cd /usr/share/doc/countersign && grep -roP '\]\(\K[^)#\s]+(?=[)#])' --include='*.md' . | grep -v '://' | while IFS=: read -r page link; do
    test -e "$(dirname "$page")/$link" || { echo "$page: $link" >>/tmp/broken; }
done)
test ! -e /tmp/broken
zgrep -q Django /usr/share/doc/countersign/NOTICE*
zgrep -q rustls /usr/share/doc/countersign/THIRD-PARTY*
zcat /usr/share/man/man1/countersign-serve.1.gz | grep -q configuration
bash -c '. /usr/share/bash-completion/completions/countersign; complete -p countersign'
# systemd keeps the sockets open: while one process follows the other, no connection is refused.
systemctl is-enabled countersign.socket countersign-admin.socket
calls() {
    set +x
    while [ ! -e /tmp/stop ]; do
        { printf 'GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n\r\n' >&4 && head -n 1 <&4 | grep -q '^HTTP/1.1 401'; } \
            4<>/dev/tcp/127.0.0.1/8080 || echo "not answered" >>/tmp/lost
        echo call >>/tmp/calls
    done
}
touch /tmp/calls
calls &
becomes() { timeout 30 sh -c "until [ \"\$(systemctl is-active $1)\" = $2 ]; do sleep 0.1; done"; }
go_on() { local before; before=$(wc -l </tmp/calls); timeout 30 sh -c "until [ \$(wc -l </tmp/calls) -gt $((before + 20)) ]; do sleep 0.1; done"; }
go_on
systemctl restart countersign
go_on
systemctl start countersign-next
becomes countersign inactive
go_on
systemctl start countersign
becomes countersign-next inactive
go_on
process=$(systemctl show -P MainPID countersign)

exec 3<>/dev/tcp/127.0.0.1/8081; printf "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" >&3
grep "^process_start_time_seconds" <&3

echo '# mine' >>$config
systemctl reload countersign
timeout 30 sh -c 'until journalctl -u countersign | grep configuration_reloaded; do sleep 0.1; done'
dpkg -i "$2"
ready
test "$process" != "$(systemctl show -P MainPID countersign)"
go_on
touch /tmp/stop
wait
test ! -e /tmp/lost
grep '# mine' $config
as_service consumer show shop

dpkg -r countersign
test "$(systemctl is-active countersign)" != active
test "$(systemctl is-active countersign.socket)" != active
test -e /var/lib/countersign/countersign.db
dpkg -P countersign
test ! -e /var/lib/countersign
test ! -e /etc/countersign
