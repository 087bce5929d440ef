<?php
// An API with a front controller, as frameworks of PHP have it: it decodes the path and then compares it with patterns.
$path = rawurldecode(strtok($_SERVER['REQUEST_URI'], '?'));
$routes = [
    '#^/admin$#' => 'secret',
    '#^/open/admin$#' => 'secret',
    '#^/items/[^/]+/secret$#' => 'secret',
    '#^/items/[^/]+$#' => 'item',
    '#^/open/#' => 'open',
];
foreach ($routes as $pattern => $route) {
    if (preg_match($pattern, $path)) {
        exit($route);
    }
}
http_response_code(404);
