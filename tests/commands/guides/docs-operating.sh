cat > config.toml <<END
listen.address = "127.0.0.1:$PUBLIC"
admin.listen = "127.0.0.1:$ADMIN"
upstream.api_url = "http://127.0.0.1:$API"
signature.enforcement = "observe"
log.format = "json"
END
countersign user add ada --id 4711 --password-stdin <<< 'enchantress of numbers'
# Two of its lines are of a consumer that is not registered, which the list has to show.
python3 -m http.server --bind 127.0.0.1 "$API" > api.log 2>&1 &
countersign serve 2> log &
until countersign health --ready && curl -o api.out "http://127.0.0.1:$API/"; do sleep 0.1; done
for _ in 1 2; do
    curl -o /dev/null -H "$(countersign sign GET "http://127.0.0.1:$PUBLIC/x" --consumer-key nobody --consumer-secret a --token b --token-secret c)" \
        "http://127.0.0.1:$PUBLIC/x"
done
kill $! && wait $!
jq() { command jq "$@" | tee jq.out && grep -q '^nobody.consumer_key_unknown.*2$' jq.out; }
cat > apps.csv <<'END'
consumer_key,consumer_secret,title,back
dpf43f3p2l4k3l03,kd94hf93k423kf44,Photo printer,https://printer.example/ready
END
cat > people.csv <<'END'
id,login,password
4712,grace,$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW
END
printf 'token\ttoken_secret\tconsumer\tlast\nnnch734d00sl2jdk\tpfkkdhi9sl3r4s00\tdpf43f3p2l4k3l03\t\\N\n' > tokens.tsv
