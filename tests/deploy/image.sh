#!/bin/bash
# Runs the program of an unpacked image as a container would: on a read-only root, without root's rights. image.sh ROOT, in a mount
# namespace of its own.
set -euo pipefail
root=$1
cat >"$root/etc/countersign/config.toml" <<'END'
listen.address = "127.0.0.1:0"
upstream.api_url = "http://127.0.0.1:1"
store.url = "/var/lib/countersign/countersign.db"
admin.listen = "unix:/var/lib/countersign/admin.sock"
END
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o uid=10001,gid=10001,mode=700 tmpfs "$root/var/lib/countersign"
inside() { chroot --userspec=10001:10001 "$root" "$@"; }
export PATH=/usr/local/bin:$PATH COUNTERSIGN_CONFIG=/etc/countersign/config.toml
chroot --userspec=10001:10001 "$root" countersign serve &
for _ in {1..300}; do
    inside countersign health --ready 2>/dev/null && break
    sleep 0.1
done
inside countersign health --ready
inside countersign consumer add --name Shop >/dev/null
kill -TERM $!
wait $!
