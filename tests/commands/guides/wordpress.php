<?php
// The parts of WordPress that the guide's scripts use, on the tables of docs-migrating.sql: wordpress.php SCRIPT

function rows(string $sql): array
{
    $command = "mariadb --no-defaults --socket=\"\$HOME/mariadb.sock\" --user=root --batch --raw --skip-column-names wordpress";
    exec("$command --execute " . escapeshellarg($sql), $rows, $status);
    return $status === 0 ? $rows : exit(1);
}

final class Posts
{
    const CONSUMERS = [3 => ["post_title" => "Blog editor", "key" => "wp1", "secret" => "secret-of-wp", "callback" => "https://editor.example/back"]];
}

function get_posts(array $query): array
{
    return $query["post_type"] === "json_consumer" ? array_map(fn($post) => (object) $post, array_values(Posts::CONSUMERS)) : [];
}

function get_post(int $id): object
{
    return (object) Posts::CONSUMERS[$id];
}

function get_option(string $name): mixed
{
    return unserialize(rows("SELECT option_value FROM wp_options WHERE option_name = '$name'")[0]);
}

$wpdb = new class {
    public string $options = "wp_options";

    public function get_col(string $sql): array
    {
        return rows($sql);
    }
};

require $argv[1];
