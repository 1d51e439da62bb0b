"""A plot of the modules on one rank as SVG: useful GFLOP/s and ratio over the number of tokens."""

import math

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 260, 60, 50, 80
COLOURS = {"triangle_outgoing": "#1f77b4", "triangle_incoming": "#17becf", "transition": "#d62728",
           "triangle_attention_starting": "#2ca02c", "triangle_attention_ending": "#98df8a",
           "pair_block": "#9467bd"}
TITLES = {"forward": "forward", "both": "forward and backward"}


def series(rows, which, key):
    """Points (N, value) by module."""
    found = {}
    for row in rows:
        if row["kind"] == "module" and row["pass"] == which and row["ranks"] == 1 and key in row:
            found.setdefault(row["module"], []).append((row["tokens"], row[key]))
    return {module: sorted(points) for module, points in found.items()}


def ticks(largest):
    """Some round numbers from zero to `largest`."""
    power = 10.0 ** math.floor(math.log10(largest))
    step = next(s * power for s in (0.1, 0.2, 0.5, 1, 2) if largest / (s * power) <= 8)
    return [round(i * step, 6) for i in range(int(largest / step) + 1)]


class Panel:
    """Axes from zero to what has been given."""

    def __init__(self, column, line, title, largest_x, largest_y):
        self.left, self.top = LEFT + column * (WIDTH + GAP), TOP + line * (HEIGHT + GAP)
        self.x, self.y = largest_x, largest_y
        self.parts = [f'<text x="{self.left}" y="{self.top - 12}">{title}</text>',
                      f'<rect x="{self.left}" y="{self.top}" width="{WIDTH}" height="{HEIGHT}" '
                      'fill="none" stroke="#888"/>']
        for x in ticks(largest_x):
            self.parts.append(f'<text x="{self.at(x, 0)[0]:.0f}" y="{self.top + HEIGHT + 16}" '
                              f'text-anchor="middle">{x:g}</text>')
        for y in ticks(largest_y):
            self.parts.append(f'<text x="{self.left - 6}" y="{self.at(0, y)[1] + 4:.0f}" '
                              f'text-anchor="end">{y:g}</text>')

    def at(self, x, y):
        return (self.left + WIDTH * x / self.x, self.top + HEIGHT * (1 - min(y / self.y, 1)))

    def line(self, points, colour, dashed=False):
        path = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                          f'stroke-width="2"{dash}/>')
        for x, y in points:
            place = self.at(x, y)
            self.parts.append(f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3" '
                              f'fill="{colour}"/>')


def svg(rows):
    modules = [row for row in rows if row["kind"] == "module"]
    tokens = max((row["tokens"] for row in modules), default=1)
    rate = max((row[key] for row in modules for key in ("gflops", "peer_gflops", "peak_gflops")
                if key in row and row["ranks"] == 1), default=1)
    ratio = max((row["peer_ratio"] for row in modules
                 if "peer_ratio" in row and row["ranks"] == 1), default=1)
    parts = []
    for column, which in enumerate(("forward", "both")):
        panel = Panel(column, 0, f"GFLOP/s over N, {TITLES[which]}; dashed: PyTorch; grey: peak",
                      tokens, 1.05 * rate)
        for key, dashed in (("gflops", False), ("peer_gflops", True)):
            for module, points in series(rows, which, key).items():
                panel.line(points, COLOURS[module], dashed)
        peaks = [row["peak_gflops"] for row in modules if row["ranks"] == 1]
        if peaks:
            middle = sorted(peaks)[len(peaks) // 2]
            panel.line([(0, middle), (tokens, middle)], "#bbb")
        parts += panel.parts
        panel = Panel(column, 1, f"PyTorch's time by ours over N, {TITLES[which]}", tokens,
                      1.1 * max(ratio, 1))
        panel.line([(0, 1), (tokens, 1)], "#bbb")
        for module, points in series(rows, which, "peer_ratio").items():
            panel.line(points, COLOURS[module])
        parts += panel.parts
    top = TOP + 2 * (HEIGHT + GAP)
    for i, (module, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + (i % 3) * 300, top + (i // 3) * 20
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{module}</text>')
    width, height = LEFT + 2 * (WIDTH + GAP), top + 40
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="13">\n<rect width="{width}" height="{height}" '
            'fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")
