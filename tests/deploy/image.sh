#!/bin/bash
# Runs the program of an unpacked image as a container would, without root's rights. image.sh ROOT, in a mount namespace and a network
# namespace of its own, with the environment of the image.
set -euo pipefail
root=$1
data=$root/var/lib/countersign
export PATH=/usr/local/bin:$PATH
fail() { echo "image.sh: $1" >&2; exit 1; }
inside() { timeout 60 chroot --userspec=10001:10001 "$root" countersign "$@"; }

# The API of that configuration.
ip link set lo up
python3 -m http.server --bind 127.0.0.1 --directory "$root/tmp" 9000 >/dev/null 2>&1 &
api=$!
trap 'kill "$api"' EXIT
for _ in {1..300}; do
    (: </dev/tcp/127.0.0.1/9000) 2>/dev/null && break
    sleep 0.1
done

# Checks, serves and registers a consumer.
use() {
    inside check
    chroot --userspec=10001:10001 "$root" countersign serve &
    local serve=$!
    for _ in {1..300}; do
        inside health --ready 2>/dev/null && break
        sleep 0.1
    done
    inside health --ready
    inside consumer add --name Shop >/dev/null
    kill -TERM "$serve"
    wait "$serve"
    [ -s "$data/countersign.db" ] && [ -s "$data/countersign.db.nonces" ] || fail "the store is not in the data directory"
}

# The demo, as the README starts it.
chroot --userspec=10001:10001 "$root" countersign demo --listen 127.0.0.1:0 >"$root.demo" &
demo=$!
for _ in {1..300}; do
    grep -q '^Metrics and health' "$root.demo" && break
    sleep 0.1
done
grep -q '^Metrics and health' "$root.demo" || fail "the demo does not start"
kill -TERM "$demo"
wait "$demo"

# As it is, without any volume.
use
rm "$data"/*

# Read-only, with a new volume: Docker copies the content of the image and its owner into it.
cp -a "$data" "$root.volume"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$root.volume" "$data"
use
umount "$data"

# With a directory of the host, which Docker makes for root if it is missing.
mount -t tmpfs -o mode=755 tmpfs "$data"
for command in check serve; do
    code=0
    told=$(inside "$command" 2>&1) || code=$?
    [ "$code" = 1 ] || fail "$command with a volume of root: $code: $told"
    grep -q '^countersign: .*by user 10001; run chown 10001 /var/lib/countersign' <<<"$told" || fail "$command does not name the fix: $told"
done
chown 10001 "$data"
use
