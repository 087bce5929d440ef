"""Line plots as SVG, readable on light and dark backgrounds."""

import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 56, 84
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d1d9e0 } .axis { stroke: #59636e } .line { fill: none; stroke-width: 2.2 }
.s0 { stroke: #0969da; color: #0969da } .s1 { stroke: #bc4c00; color: #bc4c00 } .s2 { stroke: #1a7f37; color: #1a7f37 }
.dot { fill: currentColor; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .grid { stroke: #3d444d } .axis { stroke: #9198a1 }
.s0 { stroke: #58a6ff; color: #58a6ff } .s1 { stroke: #ff9b5e; color: #ff9b5e } .s2 { stroke: #4fc26b; color: #4fc26b } }
"""


def lines(title, x_label, y_label, series, *, logarithmic=True):
    """`series` is a list of (name, [(x, y), …]); y begins at 0."""
    xs = sorted({x for _, points in series for x, _ in points})
    top = nice(max(y for _, points in series for _, y in points) * 1.1)
    logarithmic = logarithmic and xs[0] > 0
    scale = math.log10 if logarithmic else float
    first, last = scale(xs[0]), scale(xs[-1])

    def right(x):
        return LEFT + (scale(x) - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def up(y):
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
    ]
    for step in range(6):
        y = top * step / 5
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{up(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    for x in xs:
        out.append(f'<line class="axis" x1="{right(x):.1f}" x2="{right(x):.1f}" y1="{up(0):.1f}" y2="{up(0) + 5:.1f}"/>')
        out.append(f'<text x="{right(x):.1f}" y="{up(0) + 20:.1f}" text-anchor="middle">{short(x)}</text>')
    out.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(0):.1f}" y2="{up(0):.1f}"/>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{up(0) + 42:.1f}" text-anchor="middle">{escape(x_label)}</text>')
    out.append(f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{escape(y_label)}</text>')
    for number, (name, points) in enumerate(series):
        path = " ".join(f"{right(x):.1f},{up(y):.1f}" for x, y in points)
        out.append(f'<g class="s{number % 3}"><polyline class="line" points="{path}"/>')
        out += [f'<circle class="dot" cx="{right(x):.1f}" cy="{up(y):.1f}" r="3.5"/>' for x, y in points]
        at = LEFT + number * 190
        out.append(f'<line class="line" x1="{at}" x2="{at + 22}" y1="{HEIGHT - 16}" y2="{HEIGHT - 16}"/></g>')
        out.append(f'<text x="{at + 28}" y="{HEIGHT - 12}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])


def nice(value):
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value)


def short(value):
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.2g}"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")
