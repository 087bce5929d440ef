cat > config.toml <<END
upstream.api_url = "http://127.0.0.1:$API"
END
echo of-the-consumer > secret
echo of-the-token > token-secret
sent=$(countersign sign GET 'https://api.example.com/members/1?fields=name' --consumer-key key --consumer-secret @secret \
    --token token --token-secret @token-secret)
sent=${sent#Authorization: }
