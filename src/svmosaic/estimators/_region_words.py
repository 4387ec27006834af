"""Regions in words for `regions_`: a fit keeps a few of its rows, which are described when `regions_` is first read."""

import numpy as np

from svmosaic.explain.contributions import homes_of, names_of
from svmosaic.maps.protocol import dense
from svmosaic.rows import evenly

# Tiles of which `regions_` has the words (more are merged by `describe_regions`), rows by which they are found, and
# columns that conditions are looked for in: those whose contributions vary most.
MOST_DESCRIBED, DESCRIBED_ROWS, MOST_COLUMNS = 256, 2000, 60


def sample_regions(mosaic, counts, n_rows, take):
    """Some rows of a fit, from which its regions can be described in words; None if there are one or many regions.

    Parameters
    ----------
    mosaic : Mosaic
    counts : dict
        What `count_regions` returned for the fit: columns are chosen by its "spread".
    n_rows : int
        How many there are to choose from.
    take : callable
        From indices of rows to their codes, and to the rows as the tiles see them.

    Returns
    -------
    (column, values, homes)
        Indices of columns, their values of shape (n_rows, n_columns), and the tile of each row, for each gate.
    """
    if not 1 < mosaic.n_tiles <= MOST_DESCRIBED:
        return None
    codes, rows = take(evenly(n_rows, DESCRIBED_ROWS))
    importance = counts["spread"].sum(axis=0)
    column = np.sort(np.argsort(-importance, kind="stable")[:MOST_COLUMNS])
    return column, dense(getattr(rows, "inputs", rows)[:, column]), homes_of(mosaic.gate, codes)


class RegionWordsMixin:
    """The regions in words, for `regions_`."""

    def _keep_region_sample(self, sample):
        """Take over what `sample_regions` returned for a fit."""
        for name in ("region_words_", "_region_sample"):
            vars(self).pop(name, None)
        if sample is not None:
            self._region_sample = sample

    def _region_words(self):
        """Columns of `regions_`: rule, covers and pure; none of models with very many tiles."""
        if self.mosaic_.n_tiles == 1:
            return {"rule": np.array(["all rows"]), "covers": np.ones(1), "pure": np.ones(1)}
        if "region_words_" not in vars(self) and "_region_sample" in vars(self):
            from svmosaic.explain.regions import words_of_homes  # here: it takes a while to import

            column, values, homes = self._region_sample
            names = names_of(self.mosaic_, self._row_names)
            chosen = [names[f] for f in column]
            self.region_words_ = packed(words_of_homes(values, chosen, homes, self.mosaic_.n_tiles))
        words = vars(self).get("region_words_", {})
        return words and {**words, "rule": np.char.decode(words["rule"], "utf-8")}

    def __getstate__(self):
        """The words in place of the rows that they are found by: model files and pickles stay small."""
        state = dict(super().__getstate__())
        if state.pop("_region_sample", None) is not None:
            self._region_words()
            state["region_words_"] = self.region_words_
        return state


def packed(words) -> dict:
    """Words as they are kept: a byte per letter."""
    return words and {**words, "rule": np.char.encode(words["rule"], "utf-8")}
