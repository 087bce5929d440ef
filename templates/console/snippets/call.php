<?php
$key = '@KEY@';
$secret = '@SECRET@';
$url = '@URL@';
// All parameters, also those of a query or a form, are sorted and signed.
$signed = [
    'oauth_callback' => '@CALLBACK@',  @flow
    'oauth_consumer_key' => $key,
    'oauth_nonce' => bin2hex(random_bytes(16)),
    'oauth_signature_method' => 'HMAC-SHA1',
    'oauth_timestamp' => (string) time(),
    'oauth_version' => '1.0',
];
ksort($signed);
$parameters = http_build_query($signed, '', '&', PHP_QUERY_RFC3986);
$base = implode('&', array_map('rawurlencode', ['GET', $url, $parameters]));
$signed['oauth_signature'] = base64_encode(hash_hmac('sha1', $base, rawurlencode($secret) . '&', true));
$pairs = [];
foreach ($signed as $name => $value) {
    $pairs[] = $name . '="' . rawurlencode($value) . '"';
}
$options = ['http' => ['header' => 'Authorization: OAuth ' . implode(', ', $pairs), 'ignore_errors' => true]];
$text = file_get_contents($url, false, stream_context_create($options));
echo $http_response_header[0], ' ', $text, "\n";
parse_str($text, $token);  @flow
echo 'Open @OPEN@', $token['oauth_token'], "\n";  @flow
