"""Counts of the warnings that cells recorded while they ran.

A warning inside a cell is not printed: cells run in parallel and are reused. Their records keep the messages; programs
end with the line made here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store

__all__ = ["count_warnings", "warning_summary"]


def count_warnings(keys: Iterable[str], store: Store) -> tuple[Counter[str], list[str]]:
    """Return how many warnings of each category the cells recorded, and the keys of the cells that have any.

    A message that one cell repeated counts once; cells that are not in the store are passed over.
    """
    counts: Counter[str] = Counter()
    warned: list[str] = []
    for key in dict.fromkeys(keys):
        try:
            messages = store.record(key).get("warnings", [])
        except ExperimentError:
            continue
        counts.update(message.partition(":")[0] for message in messages)
        warned += [key] if messages else []
    return counts, warned


def warning_summary(keys: Iterable[str], store: Store, program: str = "multilab") -> str | None:
    """Return one line with the number of warnings by category and the command that shows them.

    Parameters
    ----------
    keys : iterable of str
        Cells, or units of analyses.
    store : Store
    program : str, default "multilab"
        How the program is called.

    Returns
    -------
    str or None
        ``3 warnings (ConvergenceWarning 3): multilab store show 0198b1c24ad7``; ``None`` without any warning.
    """
    counts, warned = count_warnings(keys, store)
    if not warned:
        return None
    total = sum(counts.values())
    categories = ", ".join(f"{category} {count}" for category, count in counts.most_common())
    more = len(warned) - 1
    others = f" (and {more} more cell{'s' if more > 1 else ''})" if more else ""
    noun = "warning" if total == 1 else "warnings"
    return f"{total} {noun} ({categories}): {program} store show {warned[0][:12]}{others}"
