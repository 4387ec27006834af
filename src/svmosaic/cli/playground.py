"""`svmosaic playground`: a page to draw points in and watch mosaics learn them."""

from svmosaic.atomic import write_text
from svmosaic.cli._io import add_output_options, check_file, say


def add_arguments(parser):
    """Where to write the page."""
    parser.add_argument("--html", required=True, metavar="FILE", help="HTML file to write")
    add_output_options(parser)


def run(options):
    """Write the page."""
    check_file(options.html)
    from svmosaic.explain.displays import playground_page

    write_text(options.html, playground_page())
    say(options, {"html": options.html}, [f"written to {options.html}: open it in a browser"])
