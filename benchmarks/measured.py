"""Pages of the documentation with measured parts, each between two marks, that are made of stored results."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


def stored(name):
    """What a file of benchmarks/results holds; a list where it has one record a line."""
    text = (HERE / "results" / f"{name}.json").read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def table(columns, rows) -> str:
    """A table in Markdown; cells are shown as `str` shows them."""
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(head + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def machine_of(part) -> str:
    """What a part of the results was measured on, and when."""
    machine = part["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {machine['date']}"


@dataclass(frozen=True)
class Page:
    """A page, the results it shows, and what makes paragraphs and tables of them.

    One maker fills the place between `<!-- measured: begin -->` and `<!-- measured: end -->`; several are a dict, and
    that of "name" fills the place between `<!-- measured name: begin -->` and `<!-- measured name: end -->`.
    """

    name: str
    results: tuple[str, ...]
    parts: Callable | dict[str, Callable]

    @property
    def path(self) -> Path:
        return HERE.parent / "docs" / self.name

    @property
    def places(self) -> dict[str, Callable]:
        """What stands in the marks, and who fills the place between them."""
        if isinstance(self.parts, dict):
            return {f"measured {name}": parts for name, parts in self.parts.items()}
        return {"measured": self.parts}

    def made(self) -> str:
        """The page as the stored results make it."""
        text = self.path.read_text()
        results = [stored(name) for name in self.results]
        for mark, parts in self.places.items():
            begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
            before, rest = text.split(begin)
            _, after = rest.split(end)
            text = before + begin + "\n" + "\n\n".join(parts(*results)) + "\n\n" + end + after
        return text

    def write(self):
        """Put the results into the page."""
        self.path.write_text(self.made())
