"""Small files that the tests of the readers share."""

from __future__ import annotations

DENSE = """% a comment
@relation 'Small: -C 2 -split-number 1' %50

@attribute sun {0,1}
@ATTRIBUTE 'rain\\'s end' {0, 1}
@attribute height REAL
@attribute "wind \\"x\\"" {weak,'very strong', none} % how it blows
@attribute dry {1,0}
@attribute month integer [1,12]
@data
1,0,1.5,weak,1,3

% between
0,1,-2e-1,'very strong',0,12
1,1,.25,none,1,1
"""

XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="sun"></label>
<label name="hail"><label name="rain's end"/></label>
</labels>
"""


def numeric(rows: str, relation: str = "r: -C 2") -> str:
    """Return a file of two labels (one nominal, one numeric), two numbers and one nominal {a,b,c}."""
    return (
        f"@relation '{relation}'\n@attribute l1 {{0,1}}\n@attribute l2 numeric\n@attribute x numeric\n"
        f"@attribute y numeric\n@attribute z {{a,b,c}}\n@data\n{rows}"
    )
