"""The methods of a comparison: those of ``conf/portfolio.yaml``, or any others by name and glob."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from multilab.cells.arguments import check_method
from multilab.cells.conf import names, read_settings_file
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, load_method
from multilab.core import conf_dir
from multilab.core.messages import unknown_name
from multilab.core.shell import command
from multilab.core.text import comma_separated

__all__ = ["Portfolio", "PortfolioMethod", "load_portfolio"]

_BLOCK = {"description", "reason", "set", "define", "linear", "words", "sparse", "bag", "chars"}
_CHARS = "_chars"
"""End of the name of a member that gets character n-grams of texts in addition to words."""


@dataclass(frozen=True)
class PortfolioMethod:
    """A method of a comparison.

    Attributes
    ----------
    method : Method
        With the arguments that the portfolio changes.
    base : str
        Name of its file in ``conf/method``; of the method itself except for members with character n-grams.
    changes : dict
        The arguments that the portfolio changes.
    description : str
        What the method is, as part of a sentence: from the portfolio, otherwise its title.
    why : str
        What the method is and why it is in the portfolio, for a table; empty for other methods.
    in_conf : bool
        Whether the method has a file ``conf/method/<name>.yaml``; the baseline is defined in the portfolio itself.
    linear : bool
        Whether the cost grows with the number of nonzero entries of a sparse matrix.
    words : dict
        Further changes on a table with free text.
    sparse : dict
        Further changes on a sparse matrix.
    bag : dict
        Further changes on a bag of words, after those on a sparse matrix.
    chars : bool
        Whether the method gets character n-grams of texts in addition to words; its name then ends in ``_chars``.
    """

    method: Method
    base: str
    changes: dict[str, Any]
    description: str
    why: str = ""
    in_conf: bool = True
    linear: bool = False
    sparse: dict[str, Any] = field(default_factory=dict)
    chars: bool = False
    words: dict[str, Any] = field(default_factory=dict)
    bag: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.method.name

    def on_sparse(self) -> "PortfolioMethod":
        """Return the member for a sparse matrix, without standardisation."""
        changes = {"preprocessing": "none"} if self.method.preprocessing == "standard" else {}
        return self._changed(changes | self.sparse)

    def on_bag(self) -> "PortfolioMethod":
        """Return the member for a bag of words, see `multilab.methods.word_weights`."""
        return self.on_sparse()._changed(self.bag)

    def on_words(self) -> "PortfolioMethod":
        """Return the member for a table with free text."""
        return self._changed(self.words)

    def _changed(self, changes: dict[str, Any]) -> "PortfolioMethod":
        return replace(self, method=self.method.with_params(changes), changes=self.changes | changes)


@dataclass(frozen=True)
class Portfolio:
    """The content of ``conf/portfolio.yaml``.

    Attributes
    ----------
    members : dict of str to PortfolioMethod
    metrics : tuple of str
        Metrics of a comparison.
    baseline : str
        The method that reads no features.
    alpha : float
        Significance level of the tests.
    """

    members: dict[str, PortfolioMethod]
    metrics: tuple[str, ...]
    baseline: str
    alpha: float

    def select(
        self, patterns: str | None, sparse: bool = False, text: bool = False, bag: bool = False
    ) -> list[PortfolioMethod]:
        """Return the methods that a comma-separated list of names and globs selects, all of the portfolio for None.

        A method of the portfolio has the portfolio's arguments: with ``sparse`` those for a sparse matrix, with ``bag``
        those for a bag of words, with ``text`` those for free text. Members with character n-grams are left out without
        ``text``.

        Raises
        ------
        ExperimentError
            If there is no such method, or its arguments are wrong.
        """
        if patterns is None:
            chosen = list(self.members)
        else:
            method_names = [*dict.fromkeys([*self.members, *names("method")])]
            chosen = list(
                dict.fromkeys(name for pattern in _split(patterns) for name in _matching(pattern, method_names))
            )
        members = []
        for name in chosen:
            member = self.members.get(name) or _outside(name)
            if name in self.members and (sparse or text or bag):
                member = member.on_bag() if bag else member.on_sparse() if sparse else member.on_words()
            if text or not member.chars:
                check_method(member.method)
                members.append(member)
        return members

    def floor(self, names: Collection[str]) -> str:
        """Return the linear method among some that is fitted first, whatever the time; empty if none is linear."""
        return next((name for name, member in self.members.items() if member.linear and name in names), "")


def _outside(name: str) -> PortfolioMethod:
    """Return a method that is not in the portfolio."""
    method = load_method(name)
    return PortfolioMethod(method, name, {}, method.title)


def _split(patterns: str) -> list[str]:
    parts = comma_separated(patterns)
    if not parts:
        raise ExperimentError("--method is empty; name methods, as in --method br_logistic,mlknn,'decide_*'")
    return parts


def _matching(pattern: str, known: list[str]) -> list[str]:
    matches = [name for name in known if fnmatchcase(name, pattern)]
    if not matches:
        raise ExperimentError(
            f"--method: {unknown_name('method', pattern, known, command('multilab') + ' methods list')}"
        )
    return matches


def load_portfolio() -> Portfolio:
    """Read ``conf/portfolio.yaml``.

    Raises
    ------
    ExperimentError
        If the file is missing or is not a portfolio.
    """
    path = conf_dir() / "portfolio.yaml"
    if not path.is_file():
        raise ExperimentError(f"{path} does not exist; copy conf/portfolio.yaml of multilab into this folder")
    content = read_settings_file(path)
    for key in ("methods", "metrics", "baseline"):
        if key not in content:
            raise ExperimentError(f"{path}: {key} is missing")
    if not isinstance(content["methods"], dict):
        raise ExperimentError(f"{path}: methods must be a mapping of names to settings")
    members = {name: _member(str(path), str(name), block or {}) for name, block in content["methods"].items()}
    return Portfolio(members, tuple(content["metrics"]), content["baseline"], float(content.get("alpha", 0.05)))


def _member(path: str, name: str, block: Any) -> PortfolioMethod:
    if not isinstance(block, dict) or set(block) - _BLOCK:
        raise ExperimentError(f"{path}: methods.{name} may have {', '.join(sorted(_BLOCK))}; got {block!r}")
    changes = block.get("set") or {}
    defined = block.get("define")
    chars = bool(block.get("chars"))
    base = name.removesuffix(_CHARS) if chars else name
    method = Method.from_mapping(name, defined) if defined else load_method(base)
    description, reason = block.get("description", ""), block.get("reason", "")
    if chars:
        method = replace(method, name=name, title=f"{method.title}, character n-grams")
    return PortfolioMethod(
        method.with_params(changes),
        base,
        changes,
        description or method.title,
        "; ".join(filter(None, (description[:1].upper() + description[1:], reason))),
        in_conf=not defined,
        linear=bool(block.get("linear")),
        sparse=block.get("sparse") or {},
        chars=chars,
        words=block.get("words") or {},
        bag=block.get("bag") or {},
    )
