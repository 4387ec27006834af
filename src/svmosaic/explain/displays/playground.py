"""The playground: one HTML page in which mosaics learn points that one draws."""

from importlib import resources


def playground_page() -> str:
    """Return an interactive page, which works offline, on which you draw points and watch models learn them.

    A small trainer in JavaScript, `playground.js`, fits linear SVMs, k-means cells, clustered SVMs, locally linear
    SVMs, learned gates and mixtures, straight or with pieces, to points in the plane, and the page shows the frames of
    the fit.

    Returns
    -------
    str

    See Also
    --------
    write_report : A page about a fitted model.

    Examples
    --------
    >>> from svmosaic.explain.displays import playground_page
    >>> "<title>svmosaic playground</title>" in playground_page()
    True
    """
    folder = resources.files("svmosaic.explain.displays")
    parts = {"TRAINER": "playground.js", "PAGE": "playground_page.js"}
    page = folder.joinpath("playground.html").read_text(encoding="utf-8")
    for mark, name in parts.items():
        page = page.replace(f"<!--{mark}-->", folder.joinpath(name).read_text(encoding="utf-8"))
    return page
