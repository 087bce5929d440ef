cat > config.toml <<END
upstream.api_url = "http://127.0.0.1:$API"
END
countersign user add ada --id 4711 --password-stdin <<< 'enchantress of numbers'
cat > apps.csv <<'END'
consumer_key,consumer_secret,title,back
dpf43f3p2l4k3l03,kd94hf93k423kf44,Photo printer,https://printer.example/ready
END
cat > people.csv <<'END'
id,login,password
4712,grace,$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW
END
printf 'token\ttoken_secret\tconsumer\tlast_used_at\nnnch734d00sl2jdk\tpfkkdhi9sl3r4s00\tdpf43f3p2l4k3l03\t\\N\n' > tokens.tsv
