"""The measured part of a page: what stands between two marks, made of stored results."""

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def with_measured(page, parts):
    """The page with its measured part replaced by the parts."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + "\n\n".join(parts) + "\n\n" + END + rest.split(END)[1]
