cat > config.toml <<END
listen.address = "127.0.0.1:$PUBLIC"
upstream.api_url = "http://127.0.0.1:$API"
permission = [{ name = "members.read", title = "See the members" }]
END
# There is a store already.
countersign consumer add --name Other
