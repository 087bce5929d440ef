<?php
// An API with a front controller, as frameworks of PHP have it: it decodes the path and then compares it with patterns, and the
// method in upper case.
$path = rawurldecode(strtok($_SERVER['REQUEST_URI'], '?'));
$routes = [
    '#^/admin$#' => 'secret',
    '#^/open/admin$#' => 'secret',
    '#^/items/[^/]+/secret$#' => 'secret',
    '#^/items/[^/]+$#' => 'item',
    '#^/open/#' => 'open',
    '#^/write/[^/]+$#' => 'POST write',
    '#^/report/[^/]+$#' => 'GET report',
    '#^/read/#' => 'GET read',
];
$method = strtoupper($_SERVER['REQUEST_METHOD']);
$method = $method == 'HEAD' ? 'GET' : $method;
foreach ($routes as $pattern => $route) {
    $words = explode(' ', $route);
    if (preg_match($pattern, $path) && in_array($words[0], [$method, $route])) {
        header('X-Route: ' . end($words));
        exit(end($words));
    }
}
http_response_code(404);
