"""A parser of the pages of reports."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """All that the tests ask of a page: its elements, addresses and the cells of its tables."""

    VOID = ("meta", "img", "br", "wbr", "link")

    def __init__(self, text):
        super().__init__()
        self.stack, self.elements, self.tables, self.row = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in self.VOID:
            self.stack.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append({"text": "", "bold": False, "class": attributes.get("class")})

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if ("td" in self.stack or "th" in self.stack) and self.tables:
            cell = self.tables[-1][-1][-1]
            cell["text"] += data
            cell["bold"] |= "b" in self.stack
