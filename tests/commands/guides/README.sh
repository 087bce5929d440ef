# Cargo has built the program already; the demo ends once it prints its call.
cargo() {
    [ "$1 $2 $3" = "run --release --" ] || return 1
    shift 3
    countersign "$@" --listen 127.0.0.1:0 > demo.out 2>&1 &
    until grep -q '^curl' demo.out; do kill -0 $! || return 1; sleep 0.1; done
    eval "$(grep '^curl' demo.out)"
    kill $! && wait $!
}
cat > config.toml <<END
listen.address = "127.0.0.1:$PUBLIC"
upstream.api_url = "http://127.0.0.1:$API"
permission = [{ name = "members.read", title = "See the members" }]
END
echo of-the-consumer > secret
echo of-the-token > token-secret
sent=$(countersign sign GET 'https://api.example.com/members/1?fields=name' --consumer-key key --consumer-secret @secret \
    --token token --token-secret @token-secret)
sent=${sent#Authorization: }
# There is a store already.
countersign consumer add --name Other
