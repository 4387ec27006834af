"""Pages of the documentation with a measured part, between two marks, that is made of stored results."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def stored(name):
    """What a file of benchmarks/results holds; a list where it has one record a line."""
    text = (HERE / "results" / f"{name}.json").read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Page:
    """A page, the results it shows, and what makes paragraphs and tables of them."""

    name: str
    results: tuple[str, ...]
    parts: Callable

    @property
    def path(self) -> Path:
        return HERE.parent / "docs" / self.name

    def made(self) -> str:
        """The page as the stored results make it."""
        before, rest = self.path.read_text().split(BEGIN)
        parts = self.parts(*map(stored, self.results))
        return before + BEGIN + "\n" + "\n\n".join(parts) + "\n\n" + END + rest.split(END)[1]

    def write(self):
        """Put the results into the page."""
        self.path.write_text(self.made())
