"""How text stands for values: what is missing, and how numbers are written."""

from dataclasses import dataclass

from svmosaic.table.formats._table import TableError

# Taken as missing in the columns of features if nothing else is asked for. Empty text is always missing.
MISSING_TEXTS = (
    "?", "-", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """The conventions of a text file: texts that are missing besides empty text, and how numbers are written."""

    # If None: MISSING_TEXTS in features; in labels none, unless all others are numbers, since NA may be a class.
    na: tuple | None = None
    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self):
        for name, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-\"'\n\r"):
                raise TableError(f"--{name} must be a single mark such as . or , and not {mark!r}")
        if self.decimal == self.thousands:
            raise TableError(f"--decimal and --thousands are both {self.decimal!r}: a number could not be read")

    @property
    def missing(self) -> list:
        """Texts that are missing in features."""
        return ["", *(MISSING_TEXTS if self.na is None else self.na)]

    @property
    def missing_labels(self) -> list:
        """Texts that are missing in labels that are text."""
        return ["", *(() if self.na is None else self.na)]

    def labels(self, column, as_text=False):
        """A label column that was read as text, as numbers if it holds nothing else, and its missing texts.

        These are a dict of the rows that hold each of the texts that are taken as missing.
        """
        import pandas as pd  # here, since it takes a while to import

        texts = column.fillna("")
        known = texts[~texts.isin(self.missing)]
        numbers = pd.to_numeric(known, errors="coerce")
        # Beyond 2^53 floats skip whole numbers: such labels are names, and so are 01 and 007, as 1 and 7 are others.
        names = known.str.fullmatch(r"\s*[+-]?0\d+\s*").any()
        if not as_text and not names and len(known) and (numbers.abs() < 2**53).all():
            missing, values = texts.isin(self.missing), numbers.reindex(texts.index)
        else:
            missing = texts.isin(self.missing_labels)
            values = texts.where(~missing)
        return values, {str(text): int(count) for text, count in texts[missing].value_counts().items()}

    def is_number(self, text) -> bool:
        """Whether a text is a number, or stands for one that is missing."""
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        try:
            float(text.replace(self.decimal, "."))
        except ValueError:
            return text in self.missing
        return True
