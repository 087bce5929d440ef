cat > config.toml <<END
forward_auth.listen = "127.0.0.1:0"
listen.trusted_proxies = ["127.0.0.1"]

[service]
base_url = "https://auth.example.com"
public_api_urls = ["https://api.example.com"]
END
