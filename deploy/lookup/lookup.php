<?php
// An endpoint for store.lookup (docs/lookup.md), with the tables of Magento 2. The environment has LOOKUP_SECRET, the file of the
// secret, DB_SOCKET, the socket of the database, and MAGENTO_KEY, the crypt/key of app/etc/env.php.
$secret = trim(file_get_contents(getenv('LOOKUP_SECRET')));
$answer = function (int $status, $record = null) {
    http_response_code($status);
    header('Content-Type: application/json');
    exit($record === null ? '' : json_encode($record, JSON_THROW_ON_ERROR));
};
if (!hash_equals("Bearer $secret", $_SERVER['HTTP_AUTHORIZATION'] ?? '')) {
    $answer(401);
}
$db = new PDO('mysql:dbname=magento;charset=utf8mb4;unix_socket=' . getenv('DB_SOCKET'), 'root');
$row = function (string $sql, string $value) use ($db) {
    $query = $db->prepare($sql);
    $query->execute([$value]);
    return $query->fetch(PDO::FETCH_ASSOC) ?: null;
};
$clear = function (string $text) {
    if (!str_starts_with($text, '0:3:')) {
        return $text; // from before Magento encrypted them
    }
    $sealed = base64_decode(substr($text, 4));
    [$nonce, $sealed] = [substr($sealed, 0, 12), substr($sealed, 12)];
    return sodium_crypto_aead_chacha20poly1305_ietf_decrypt($sealed, $nonce, $nonce, getenv('MAGENTO_KEY'));
};
$asked = json_decode(file_get_contents('php://input'), true, 8, JSON_THROW_ON_ERROR);
if (isset($asked['token'])) {
    $found = $row('SELECT t.*, c.`key` AS consumer FROM oauth_token t JOIN oauth_consumer c ON c.entity_id = t.consumer_id
                   WHERE t.type = "access" AND t.authorized AND t.token = ?', $asked['token']) ?? $answer(404);
    $answer(200, ['token' => $found['token'], 'token_secret' => $clear($found['secret']), 'consumer' => $found['consumer'],
                  'user' => (string) ($found['customer_id'] ?? "admin-$found[admin_id]"), 'permissions' => ['read'],
                  'revoked' => (bool) $found['revoked']]);
}
$found = $row('SELECT * FROM oauth_consumer WHERE `key` = ?', $asked['consumer_key']) ?? $answer(404);
$answer(200, ['key' => $found['key'], 'secret' => $clear($found['secret']), 'name' => $found['name'], 'permissions' => ['read']]);
