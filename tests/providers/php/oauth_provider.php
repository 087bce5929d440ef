<?php
// A provider by OAuthProvider of PECL, as its manual shows one: calls without a token, and a handler that accepts every nonce.
$provider = new OAuthProvider();
$provider->consumerHandler(function ($provider) {
    $provider->consumer_secret = 'consumersecret';
    return $provider->consumer_key === 'shop' ? OAUTH_OK : OAUTH_CONSUMER_KEY_UNKNOWN;
});
$provider->timestampNonceHandler(fn($provider) => OAUTH_OK);
$provider->is2LeggedEndpoint(true);
try {
    $provider->checkOAuthRequest();
    echo "call of $provider->consumer_key";
} catch (OAuthException $exception) {
    http_response_code(401);
    echo 'page';
}
