"""Random edits of bytes and of JSON documents, for the fuzzer."""

import contextlib
import json
import random


class Draws:
    """Whole numbers at random; Python's own generator makes one in a tenth of the time that numpy's takes."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def integers(self, low, high=None):
        low, high = (0, low) if high is None else (low, high)
        return low + int(self._random() * (high - low))


INTERESTING = [b"\0", b"\xff", b"\x80", b"-1", b"0", b"1e309", b"nan", b"inf", b"99999999999999999999", b"2147483648",
               b'"', b"'", b",", b":", b"\n", b"\r", b"[", b"]", b"{", b"}", b"null", b"true", b"os", b"system",
               b"builtins", b"eval", b"subprocess", b"__reduce__", b"__class__", b"numpy", b"sklearn.base",
               b"svmosaic.estimators.linear", b"LinearSVC", b"2147483646:1", b"../../x", b"PK\x03\x04"]  # fmt: skip


def mutate(data, rng, other=b""):
    """A few random edits of some bytes."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(data) + 1))
        kind = int(rng.integers(8))
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << int(rng.integers(8))
        elif kind == 1 and data:
            data[at % len(data)] = int(rng.integers(256))
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 20))]
        elif kind == 3:
            data[at:at] = INTERESTING[int(rng.integers(len(INTERESTING)))]
        elif kind == 4:
            end = at + int(rng.integers(1, 40))
            data[at:at] = data[at:end]
        elif kind == 5:
            word = INTERESTING[int(rng.integers(len(INTERESTING)))]
            data[at : at + len(word)] = word
        elif kind == 6 and other:
            begin = int(rng.integers(len(other)))
            data[at : at + 30] = other[begin : begin + 30]
        else:
            data = data[:at] if rng.integers(10) == 0 else data
    return bytes(data)


def mutate_json(data, rng):
    """Exchange, remove or replace a value somewhere in a JSON document."""
    try:
        document = json.loads(data)
    except ValueError:
        return mutate(data, rng)
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if not isinstance(document, (dict, list)):
        return mutate(data, rng)
    walk(document)
    if not places:
        return mutate(data, rng)
    for _ in range(int(rng.integers(1, 4))):
        node, key = places[int(rng.integers(len(places)))]
        if isinstance(node, dict) and key not in node:
            continue
        kind = int(rng.integers(5))
        if kind == 0 and isinstance(node, dict):
            del node[key]
        elif kind == 1:
            other, place = places[int(rng.integers(len(places)))]
            if isinstance(other, list) or place in other:
                with contextlib.suppress(IndexError):
                    node[key] = json.loads(json.dumps(other[place]))
        elif kind == 2:
            node[key] = [None, -1, 2**70, 1e308, "", [], {}, True, "os", "system", "builtins", "eval",
                         "numpy", "ctypeslib", "antigravity", "__main__"][int(rng.integers(16))]  # fmt: skip
        elif isinstance(node[key], str) and node[key]:
            node[key] = mutate(node[key].encode(), rng).decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        return json.dumps(document).encode("utf-8", "replace")
    return data
