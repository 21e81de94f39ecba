"""XML files of Mulan that name the label attributes of an ARFF file."""

from __future__ import annotations

from xml.parsers import expat

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import MAX_NAMES_BYTES as MAX_XML_BYTES
from multilab.datasets.file_access import Limits, read_bytes

__all__ = ["MAX_XML_BYTES", "read_label_names"]


def read_label_names(path: PathLike) -> dict[str, int]:
    """Return the label names of a Mulan XML file in its order, each with its line.

    Parameters
    ----------
    path : path-like
        The XML file: ``<labels><label name="..."/>...</labels>``. Labels may be nested (a hierarchy); all of
        them count.

    Returns
    -------
    dict
        Name to line number.

    Raises
    ------
    DatasetError
        Not XML, an unknown encoding, more than 16 MiB, a document type or entity declaration (refused unread,
        so that entities cannot be expanded), another root than ``labels``, a label without or with a repeated
        name, or no label.
    """
    content = read_bytes(path, Limits(max_bytes=MAX_XML_BYTES))
    parser = expat.ParserCreate()
    names: dict[str, int] = {}
    depth = 0

    def refuse(*_: object) -> None:
        raise DatasetError("a document type or entity declaration is refused", path, parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        kind, line = tag.rpartition(":")[2], parser.CurrentLineNumber
        if depth == 1 and kind != "labels":
            raise DatasetError(f"the root is <{excerpt(kind)}>, expected <labels>", path, line)
        if depth > 1 and kind == "label":
            name = attributes.get("name", "").strip()
            if not name:
                raise DatasetError("a label has no name", path, line)
            if name in names:
                raise DatasetError(f"label '{excerpt(name)}' is listed twice", path, line)
            names[name] = line

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DatasetError(f"not well-formed XML ({expat.ErrorString(error.code)})", path, error.lineno) from None
    except DatasetError:
        raise
    except (LookupError, ValueError):  # raised by Python's codecs for the encoding in the XML declaration
        raise DatasetError("the encoding that the XML declares cannot be used; save it as UTF-8", path, 1) from None
    if not names:
        raise DatasetError("the XML names no label", path)
    return names
