"""LIBSVM (SVMlight) files, also compressed."""

import io

from svmosaic.table.formats._table import Table, TableError, opened, read_line, to_csr

# One mistyped index would make a table of two billion columns, each with a name.
MOST_FEATURES = 5_000_000


def libsvm_tables(path, name, rows, n_features, zero_based, progress):
    """Tables of at most `rows` rows; `name` is what to call the file in an error."""
    with opened(path, progress) as (file, report):
        kept, number, is_empty = [], 0, True
        while line := read_line(file, name, number + 1):
            number += 1
            content = line.split(b"#", 1)[0].strip()
            if not content:
                continue
            kept.append((number, content))
            if len(kept) == rows:
                yield (table := _parse(kept, n_features, zero_based, name))
                zero_based = table.feature_names[:1] == ["0"]
                kept, is_empty = [], False
                report()
        if kept:
            yield _parse(kept, n_features, zero_based, name)
        elif is_empty:
            raise TableError(f"{name} is empty")


def _parse(lines, n_features, zero_based, name):
    from sklearn.datasets import load_svmlight_file

    if zero_based is None:
        zero_based = any(b" 0:" in content or b"\t0:" in content for _, content in lines)
    try:
        X, y = load_svmlight_file(
            io.BytesIO(b"\n".join(content for _, content in lines)), n_features=n_features, zero_based=zero_based
        )
    except (ValueError, UnicodeDecodeError, OverflowError) as error:
        for number, content in lines:
            fault = _fault(content, n_features, zero_based)
            if fault is not None:
                raise TableError(f"{name}, line {number}: {fault}") from error
        raise TableError(f"{name} could not be read as LIBSVM: {error}") from error
    first = 0 if zero_based else 1
    if n_features is None and X.shape[1] > MOST_FEATURES:
        raise TableError(
            f"{name} names the feature {X.shape[1] - 1 + first}: more than {MOST_FEATURES} are not expected "
            "unless n_features is given"
        )
    return Table(to_csr(X), y, [str(first + f) for f in range(X.shape[1])], "label")


def _fault(content, n_features, zero_based):
    """What is wrong with a line, or None."""
    # Cut where the parser cuts, at ASCII spaces: text has others, and a line of these would be no words at all.
    words = [word.decode("utf-8", "replace") for word in content.split()]
    try:
        float(words[0])
    except ValueError:
        return f"the label {words[0][:40]!r} is not a number"
    previous, first = -1, 0 if zero_based else 1
    for word in words[1:]:
        if word.startswith("qid:"):
            continue
        index, _, value = word.partition(":")
        try:
            place = int(index)
            float(value)
        except ValueError:
            return f"{word[:40]!r} is not index:value"
        if place < first:
            return f"the feature {place} comes before the first, {first}"
        if place <= previous:
            return f"the features {previous} and {place} are not in ascending order"
        if n_features is not None and place >= n_features + first:
            return f"the feature {place} lies beyond the last, {n_features + first - 1}"
        previous = place
    return None
