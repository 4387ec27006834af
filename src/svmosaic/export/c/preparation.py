"""Columns of a table as C: text by its index in a list, dates by their days, missing values by NaN."""

from svmosaic.export.c.tables import array, c_string
from svmosaic.export.calendar import part_of_date
from svmosaic.export.preparation import BLANKS


def raw_features(preparation) -> tuple[list[str], str]:
    """Functions and tables, and the statements that fill `x` from the columns `given`, before all steps."""
    tables, lines = [], []
    parts = {part for part in preparation.part if part not in (None, "missing", "days")}
    if parts:
        tables += [_FLOOR, *(_part(part) for part in sorted(parts))]
    if preparation.text_columns:
        tables.append(_CODE)
    done = -1
    for f, column in enumerate(map(int, preparation.source)):
        part, value = preparation.part_of(f), f"given[{column}]"
        if preparation.kinds[column] != "text":
            written = {None: value, "days": value, "missing": f"({value} != {value}) ? 1.0f : 0.0f"}
            lines.append(f"  x[{f}] = {written.get(part, f'(float){part}_of({value})')};\n")
        elif column != done:  # all features of the column, which are next to each other
            places, texts, known = preparation.lines_of_text(column)
            tables.append(array(f"line_{column}", known))
            start = f"line_{column} + code_of({value}, {len(texts)}) * {len(places)}"
            lines.append(
                f"  line = {start};\n  for (int f = 0; f < {len(places)}; ++f) x[{places[0]} + f] = line[f];\n"
            )
            done = column
    return tables, ("  const float *line;\n" if preparation.text_columns else "") + "".join(lines)


def text_function(preparation) -> str:
    """The function from a text to the number that stands for it in a row, and the lists that it looks into."""
    lists, cases = [], []
    for column, kind in enumerate(preparation.kinds):
        if kind == "text":
            _, texts, _ = preparation.lines_of_text(column)
            words = ",\n".join(f"  {c_string(text)}" for text in texts)
            lists.append(f"static const char *const text_{column}[{len(texts)}] = {{\n{words}\n}};\n")
            cases.append(f"    case {column}: list = text_{column}; count = {len(texts)}; break;\n")
    missing = [text for text in preparation.missing_texts or () if text]
    if missing:
        words = ", ".join(map(c_string, missing))
        lists.append(f"static const char *const missing_text[{len(missing)}] = {{{words}}};\n")
    strips = preparation.missing_texts is not None  # as all that came from a text file
    text = _TEXT.replace("@STRIP@", _STRIP if strips else "").replace("@END@", _STRIP_END if strips else "")
    gone = f"  if (index_in(missing_text, {len(missing)}, text, n) >= 0) return NAN;\n" if missing else ""
    text = text.replace("@MISSING@", gone).replace("@CASES@", "".join(cases))
    blank = _BLANK.replace("@BLANKS@", " || ".join(f"c == {ord(c)}" for c in BLANKS)) if strips else ""
    return "\n".join([*lists, blank + text])


def _part(part) -> str:
    """A function for a part of a date."""
    value = _Double([], "days")
    found = part_of_date(part, value, _Double.floor)
    body = "".join(value.lines)
    return f"static double {part}_of(double days) {{\n{body}  return {found.name};\n}}\n"


class _Double:
    """A value with the four operations, each of which is written as a line."""

    def __init__(self, lines, name):
        self.lines, self.name = lines, name

    def _with(self, text):
        name = f"t{len(self.lines)}"
        self.lines.append(f"  const double {name} = {text};\n")
        return _Double(self.lines, name)

    def _operation(self, mark, other):
        return self._with(f"{self.name} {mark} {other.name if isinstance(other, _Double) else repr(float(other))}")

    def __add__(self, other):
        return self._operation("+", other)

    def __sub__(self, other):
        return self._operation("-", other)

    def __mul__(self, other):
        return self._operation("*", other)

    def __truediv__(self, other):
        return self._operation("/", other)

    def floor(self):
        return self._with(f"floor_of({self.name})")


_FLOOR = """static double floor_of(double value) {
  const double whole = (double)(long long)value;
  if (value != value) return value;
  return whole > value ? whole - 1 : whole;
}
"""

_CODE = """/* The line of a text: missing text and text that the model does not know come last. */
static int code_of(float value, int n) {
  if (value != value) return n;
  return value >= 0 && value < (float)n ? (int)value : n + 1;
}
"""

_BLANK = """static int is_blank(char c) { return @BLANKS@; }

"""

_STRIP = """  while (is_blank(*text)) ++text;
"""

_STRIP_END = """  while (n > 0 && is_blank(text[n - 1])) --n;
"""

_TEXT = """static int index_in(const char *const *list, int count, const char *text, size_t n) {
  for (int k = 0; k < count; ++k)
    if (strlen(list[k]) == n && memcmp(list[k], text, n) == 0) return k;
  return -1;
}

float @NAME@_text(int column, const char *text) {
  const char *const *list;
  int count;
  size_t n;
  if (text == NULL) return NAN;
@STRIP@  n = strlen(text);
@END@  if (n == 0) return NAN;
@MISSING@  switch (column) {
@CASES@    default: return -1;
  }
  return (float)index_in(list, count, text, n);
}
"""
TEXT_HEADER = """
/* What stands for a text in a row: its index among those of the column, -1 if the model does not know it, NAN if it is
   missing. Text is in UTF-8. */
float @NAME@_text(int column, const char *text);
"""
