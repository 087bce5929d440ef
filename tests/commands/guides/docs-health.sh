cat > config.toml <<END
listen.address = "127.0.0.1:$PUBLIC"
admin.listen = "127.0.0.1:$ADMIN"
upstream.api_url = "http://127.0.0.1:$API"
signature.enforcement = "observe"
log.format = "json"
END
# Two of its lines are of a consumer that is not registered, which the list has to show. The API has no /x: that call would not break.
python3 -m http.server --bind 127.0.0.1 "$API" > api.log 2>&1 &
countersign serve 2> log &
until countersign health --ready && curl -o api.out "http://127.0.0.1:$API/"; do sleep 0.1; done
for path in / / /x; do
    curl -o /dev/null -H "$(countersign sign GET "http://127.0.0.1:$PUBLIC$path" --consumer-key absent --consumer-secret a --token b --token-secret c)" \
        "http://127.0.0.1:$PUBLIC$path"
done
kill $! && wait $!
jq() { command jq "$@" | tee jq.out && grep -q '^absent.consumer_key_unknown.*2$' jq.out; }
