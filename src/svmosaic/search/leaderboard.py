"""What was tried, as a list of lines that prints as a table."""

import html
import math

# What a table shows, and how its columns are called there.
SHOWN = {
    "": "", "model": "model", "tiles": "tiles", "pieces": "pieces", "C": "C", "scaling": "scaling",
    "details": "details", "rows": "rows", "parts": "parts", "score": "score", "std": "std", "loss": "loss",
    "seconds": "seconds",
}  # fmt: skip
TOP = 15


class Leaderboard(list):
    """A list of dicts, one per trial, that `print` and notebooks show as a table.

    ``pandas.DataFrame(leaderboard)`` gives a frame. `top(n)` prints more or fewer lines.
    """

    def top(self, n=TOP) -> str:
        """The first n lines as text."""
        names, cells = self._cells(n)
        widths = [max(len(row[c]) for row in [names, *cells]) for c in range(len(names))]
        left = [name in ("", "model", "scaling", "details") for name in names]

        def line(row):
            parts = [cell.ljust(w) if put else cell.rjust(w) for cell, w, put in zip(row, widths, left, strict=True)]
            return "  ".join(parts).rstrip()

        return "\n".join([line(names), *map(line, cells), *self._rest(n)])

    def __str__(self):
        return self.top()

    def _repr_html_(self):
        names, cells = self._cells(TOP)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        rest = "".join(f"<p>{html.escape(text)}</p>" for text in self._rest(TOP))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _cells(self, n):
        shown = self[:n]
        names = [name for name in SHOWN if not name or any(_text(line.get(name)) for line in shown)]
        rows = [[_mark(line) if not name else _text(line.get(name)) for name in names] for line in shown]
        return [SHOWN[name] for name in names], rows

    def _rest(self, n):
        if len(self) > n:
            yield f"... and {len(self) - n} more"
        if any(line.get("weight", 0) > 0 for line in self):
            yield "*: part of the model, with its share"


def _mark(line) -> str:
    weight = line.get("weight", 0.0)
    return f"* {weight:.0%}" if weight else ""


def _text(value) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
