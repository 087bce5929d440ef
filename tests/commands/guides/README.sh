# Cargo has built the program already, and neither a container engine nor a package manager is here: the demo runs all the same. It ends
# once it has printed what the document names and its calls were sent.
demonstrate() {
    rm -f demo.out
    command countersign demo --listen 127.0.0.1:0 > demo.out 2>&1 &
    until grep -qs "^Metrics" demo.out; do kill -0 $! || return 1; sleep 0.1; done
    for part in 'The whole flow' 'The console' 'A signed call' 'The same call without' 'Metrics'; do grep -q "^$part" demo.out || return 1; done
    eval "$(grep '^curl' demo.out)"
    kill $! && wait $!
}
cargo() { [ "$*" = "run -- demo" ] && demonstrate; }
docker() {
    case "$*" in
        "build -t countersign .") ;;
        "run --rm --network host countersign demo") demonstrate ;;
        *) return 1 ;;
    esac
}
# tests/run packages makes the package and installs it.
mkdir deploy && printf '#!/bin/sh\nmkdir -p target/package && touch target/package/countersign_0.1.0_amd64.deb\n' > deploy/package && chmod +x deploy/package
sudo() { [ "$1 $2" = "apt-get install" ] && [ -e "$3" ]; }
countersign() {
    case "$*" in
        "demo --listen 127.0.0.1:8090") demonstrate ;;
        *) command countersign "$@" ;;
    esac
}
