"""Programs of a paper: which of our columns stands for each of its methods. Keys need it, so it imports little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from multilab.claims.errors import ClaimsError


@dataclass(frozen=True)
class Program:
    """Assignment of our columns to the methods of a paper; a claim is judged on one program, not on the best of many.

    Attributes
    ----------
    rule : str
        How its settings were chosen; for ``fair``, a rule that uses training folds only.
    columns : dict
        Our column for each method, by the name that claims use for it.
    like : str
        Another program that supplies the columns that this one omits.
    results_known : bool
        Whether results were known when the program was chosen.
    """

    rule: Annotated[str, Meta(min_length=1, description="text that is not empty")]
    columns: dict[str, str] = field(default_factory=dict)
    like: str = ""
    results_known: bool = False


def read_programs(content: Mapping[str, Program], location: str) -> dict[str, Program]:
    """Return the programs of a paper, each with the columns of the one that it is like.

    Raises
    ------
    ClaimsError
        If there are some and not both ``fair`` and ``as_printed``, or one is like one that is not before it.
    """
    programs: dict[str, Program] = {}
    for name, program in content.items():
        if program.like and program.like not in programs:
            raise ClaimsError(f"{location}: programs.{name}: like must name a program before it, got {program.like!r}")
        shared = programs[program.like].columns if program.like else {}
        programs[name] = replace(program, columns={**shared, **program.columns})
    lacking = {"fair", "as_printed"} - set(programs)
    if programs and lacking:
        raise ClaimsError(f"{location}: programs: {' and '.join(sorted(lacking))} must be there")
    methods = {name: set(program.columns) for name, program in programs.items()}
    odd = next((name for name, own in methods.items() if own != methods["fair"]), None)
    if odd is not None:
        different = ", ".join(sorted(methods[odd] ^ methods["fair"]))
        raise ClaimsError(f"{location}: programs.{odd}: not the methods of fair: {different}")
    return programs
