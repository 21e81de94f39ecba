"""Write the card of a model: data, settings, metrics with intervals, labels, calibration, what is known to be weak.

multilab card models:/mine@champion                    Markdown, to the terminal
multilab card models:/mine@champion -o card.md
multilab card model -o card.html                       one self-contained page (or --html)
"""

import argparse

from multilab.commands.monitoring import write_card


def main(argv: list[str]) -> int:
    """`multilab card MODEL [-o card.md] [--html]`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("multilab card", description=__doc__, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("model", help="models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write; .html is a web page (default: print)")
    parser.add_argument("--html", action="store_true", help="a web page instead of Markdown")
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`)")
    arguments = parser.parse_args(argv)
    return write_card(arguments.model, arguments.output, arguments.html, arguments.tracking_uri)
