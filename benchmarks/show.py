"""What the benchmarks found, for people: tables as text or Markdown, small line charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _MARGIN = 320, 140, 24
_COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#d97706", "#0891b2")
_STYLE = (
    "text{font:11px sans-serif;fill:#444}.end{text-anchor:end;fill:#888}"
    ".frame{fill:none;stroke:#ccc}polyline{fill:none;stroke-width:1.5}"
)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int, *, markdown: bool) -> str:
    """A table; the first ``left`` columns are text, the others numbers."""
    if markdown:
        rule = ["---" if i < left else "---:" for i in range(len(head))]
        return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


@dataclass
class Panel:
    """A chart: lines by what they are called, each of (x, y). ``logarithmic``: in both directions,
    else both begin at zero."""

    title: str
    along: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    logarithmic: bool = False

    def drawn(self, left: int, top: int) -> str:
        """As SVG, its frame at this place."""
        points = [point for line in self.lines.values() for point in line]
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        across, up = self._scale(xs), self._scale(ys)
        bottom = _number(min(ys)) if self.logarithmic else "0"
        span = f"{bottom} to {_number(max(ys))}"
        below = top + _HEIGHT + 14
        parts = [
            (
                f'<text x="{left}" y="{top - 8}">{self.title} ({span})</text>'
                f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" class="frame"/>'
                f'<text x="{left + _WIDTH}" y="{below}" class="end">'
                f"{_number(max(xs))} {self.along}</text>"
            )
        ]
        if self.logarithmic:
            parts.append(f'<text x="{left}" y="{below}">{_number(min(xs))}</text>')
        for place, (name, line) in enumerate(self.lines.items()):
            colour = _COLOURS[place % len(_COLOURS)]
            path = " ".join(
                f"{left + across(x) * _WIDTH:.1f},{top + _HEIGHT - up(y) * _HEIGHT:.1f}"
                for x, y in line
            )
            parts.append(f'<polyline points="{path}" stroke="{colour}"/>')
            if len(self.lines) > 1:
                parts.append(
                    f'<text x="{left + 58 + 50 * place}" y="{below}" '
                    f'style="fill:{colour}">{name}</text>'
                )
        return "".join(parts)

    def _scale(self, values: Sequence[float]) -> Callable[[float], float]:
        """Where a value stands between the ends, from 0 to 1."""
        if not self.logarithmic:
            most = max(values) or 1.0
            return lambda value: value / most
        low, high = math.log(min(values)), math.log(max(values))
        return lambda value: (math.log(value) - low) / ((high - low) or 1.0)


def picture(panels: Sequence[Panel]) -> str:
    """Panels two by two, as SVG."""
    drawn = [
        panel.drawn((place % 2) * (_WIDTH + _MARGIN) + _MARGIN, (place // 2) * (_HEIGHT + 50) + 30)
        for place, panel in enumerate(panels)
    ]
    rows = math.ceil(len(panels) / 2)
    size = f'width="{2 * _WIDTH + 3 * _MARGIN}" height="{rows * (_HEIGHT + 50) + 20}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(drawn)}</svg>\n'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
