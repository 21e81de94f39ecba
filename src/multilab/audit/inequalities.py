"""Checks of inequalities between metrics of the same predictions.

Each holds for every row of a test set, or by Jensen's inequality for their mean, hence also for means over folds. They
assume that both metrics treat rows without true or predicted labels alike; where they do not, the difference is at most
the share of such rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.numbers import PrintedNumber
from multilab.audit.printed_table import AuditCell, AuditTable

_EMPTY = "; unless one of them counts rows without labels as 1 and the other as 0"


def _number(page: dict[str, AuditCell], name: str) -> PrintedNumber | None:
    cell = page.get(name)
    return cell.mean if cell else None


def jaccard_of(table: AuditTable, page: dict[str, AuditCell]) -> AuditCell | None:
    """Return the cell with Jaccard's index of a page: not an accuracy that is 1 - Hamming loss."""
    cell = page.get("jaccard") or page.get("accuracy")
    return None if cell is None or (cell.table, cell.method) in table.complements else cell


def _fault(check: str, cell: AuditCell, other: AuditCell, right: str, why: str) -> AuditFinding:
    assert cell.mean
    assert other.mean
    metric = f"{cell.metric}, {other.metric}"
    printed = f"{cell.mean.text}, {other.mean.text}"
    table = (
        cell.table if cell.table == other.table else ", ".join(filter(None, dict.fromkeys((cell.table, other.table))))
    )
    return AuditFinding(check, "fault", table, cell.dataset, cell.method, metric, printed, right, why)


@audit_check
def jaccard_and_f1(table: AuditTable) -> Iterator[AuditFinding]:
    """Check J <= F1 <= 2 J / (1 + J) for Jaccard's index J and F1, both averaged over examples.

    Of a row with t hits and e errors J = t / (t + e) and F = 2 t / (2 t + e) = 2 J / (1 + J) >= J. The function
    2 J / (1 + J) is concave, so the mean of F is at most its value at the mean of J. If an accuracy exceeds F1 in most
    rows of a column, the column is reported once: it is another accuracy.
    """
    faults: dict[str, list[AuditFinding]] = defaultdict(list)
    above: dict[str, int] = defaultdict(int)
    rows: dict[str, int] = defaultdict(int)
    for (_, method), page in table.pages.items():
        jaccard, f1 = jaccard_of(table, page), page.get("example_f1")
        if not (jaccard and f1 and jaccard.mean and f1.mean):
            continue
        rows[method] += 1
        j, f = jaccard.mean, f1.mean
        most = 2 * j.high / (1 + j.high)
        if j.low > f.high:
            above[method] += 1
            why = f"{j.text} > {f.text}, but J <= F1 in every row{_EMPTY}"
            faults[method].append(_fault("jaccard_and_f1", jaccard, f1, f"accuracy <= {f.text}", why))
        elif f.low > most:
            why = f"F1 <= 2 J / (1 + J) = {most:.4f} at J = {j.text}{_EMPTY}"
            faults[method].append(_fault("jaccard_and_f1", jaccard, f1, f"F1 <= {f.like(most)}", why))
    for method, findings in faults.items():
        if rows[method] >= 3 and above[method] > 0.5 * rows[method]:
            first = findings[0]
            why = f"larger than F1 in {above[method]} of {rows[method]} rows, which no Jaccard index is"
            right = "another accuracy: 1 - Hamming loss, or of single labels"
            yield AuditFinding("jaccard_and_f1", "fault", first.table, "", method, first.metric, "accuracy", right, why)
        else:
            yield from findings


@audit_check
def subset_accuracy_bounds(table: AuditTable) -> Iterator[AuditFinding]:
    """Check S <= J, S <= F1, S <= 1 - HL, S >= 1 - q HL and J <= 1 - HL for subset accuracy S.

    A row that is exactly right has J = F = 1 and no errors, any other one S = 0 and at least one of q errors: S <= J,
    S <= F and 1 - q HL <= S <= 1 - HL row by row. With t hits and e errors t + e <= q, so J = t / (t + e) <= 1 - e / q.
    """
    for (dataset, _), page in table.pages.items():
        subset, loss, q = page.get("subset_accuracy"), page.get("hamming_loss"), table.size_of(dataset).q
        jaccard, f1 = jaccard_of(table, page), page.get("example_f1")
        for other in (jaccard, f1):
            if subset and other and subset.mean and other.mean and subset.mean.low > other.mean.high:
                why = (
                    f"{subset.mean.text} > {other.mean.text}, but a row that is exactly right counts 1 in both{_EMPTY}"
                )
                yield _fault("subset_accuracy_bounds", subset, other, f"at most {other.mean.text}", why)
        for cell in (subset, jaccard):
            if cell and cell.mean and loss and loss.mean and cell.mean.low > 1 - loss.mean.low:
                why = f"{cell.mean.text} > 1 - {loss.mean.text}; an error in a row costs it at least 1/q"
                yield _fault(
                    "subset_accuracy_bounds", cell, loss, f"at most {cell.mean.like(1 - loss.mean.value)}", why
                )
        if subset and subset.mean and loss and loss.mean and q and subset.mean.high < 1 - q * loss.mean.high:
            why = f"a row that is not right has an error in {q} labels: {subset.mean.text} < 1 - {q} x {loss.mean.text}"
            right = f"at least {subset.mean.like(1 - q * loss.mean.value)}"
            yield _fault("subset_accuracy_bounds", subset, loss, right, why)
        zero_one = page.get("zero_one_loss")
        if subset and zero_one and subset.mean and zero_one.mean:
            total = subset.mean.value + zero_one.mean.value
            if abs(total - 1) > subset.mean.half + zero_one.mean.half + 1e-9:
                yield _fault("subset_accuracy_bounds", subset, zero_one, "a sum of 1", f"the two sum to {total:g}")


@audit_check
def f1_precision_recall(table: AuditTable) -> Iterator[AuditFinding]:
    """Check P + R - 1 <= F1 <= 2 P R / (P + R) for the averages of precision P, recall R and F1.

    In a row, or for a label or fold, F = 2 p r / (p + r). It is concave, so the mean of F is at most its value at the
    means; and F >= p r >= p + r - 1 since (1 - p)(1 - r) >= 0 and p + r <= 2.
    """
    for page in table.pages.values():
        for average in ("example", "macro", "micro"):
            f, p, r = (_number(page, f"{average}_{part}") for part in ("f1", "precision", "recall"))
            if not (f and p and r):
                continue
            most = 2 * p.high * r.high / (p.high + r.high) if p.high + r.high > 0 else 0.0
            least = p.low + r.low - 1
            if f.low > most or f.high < least:
                cell = page[f"{average}_f1"]
                right = f"at most {f.like(most)}" if f.low > most else f"at least {f.like(least)}"
                why = f"precision {p.text}, recall {r.text}: {max(least, 0):.4f} <= F1 <= {most:.4f}"
                metrics = ", ".join(page[f"{average}_{part}"].metric for part in ("f1", "precision", "recall"))
                printed = f"{f.text}, {p.text}, {r.text}"
                names = (cell.table, cell.dataset, cell.method, metrics)
                yield AuditFinding("f1_precision_recall", "fault", *names, printed, right, why)


@cache
def _harmonic(q: int) -> float:
    return sum(1 / k for k in range(1, q + 1))


@audit_check
def average_precision_and_one_error(table: AuditTable) -> Iterator[AuditFinding]:
    """Check AP <= 1 - OE (H_q - 1) / (q - 1), with the harmonic number H_q, for q labels.

    If the top label of a row is wrong, its p relevant labels have at best the ranks 2 to p + 1, and the average
    precision is at most (1/p) sum_j j / (j + 1) = 1 - (H_(p+1) - 1) / p. The last term is the mean of 1/2, ..., 1/(p+1)
    and falls with p <= q - 1, so the row loses at least (H_q - 1) / (q - 1). Other rows have at most 1.
    """
    for (dataset, _), page in table.pages.items():
        precision, error, q = page.get("average_precision"), page.get("one_error"), table.size_of(dataset).q
        if precision and error and precision.mean and error.mean and q and q > 1:
            loss = (_harmonic(q) - 1) / (q - 1)
            most = 1 - max(error.mean.low, 0) * loss
            if precision.mean.low > most:
                why = (
                    f"AP <= 1 - {error.mean.text} x {loss:.4f} = {most:.4f}: a wrong top of {q} labels costs {loss:.4f}"
                )
                right = f"AP <= {precision.mean.like(most)}"
                yield _fault("average_precision_and_one_error", precision, error, right, why)


@audit_check
def average_precision_and_ranking_loss(table: AuditTable) -> Iterator[AuditFinding]:
    """Check RL / q <= 1 - AP <= (q - 1) RL / 2 for q labels.

    Let the j-th relevant label of a row have m_j of u = q - p irrelevant ones above it: RL = sum m_j / (p u) and
    1 - AP = (1/p) sum m_j / (j + m_j). As j + m_j <= q the second is at least u RL / q >= RL / q, and as
    j + m_j >= 2 wherever m_j >= 1 it is at most u RL / 2 <= (q - 1) RL / 2. Ties are to be counted alike in both.
    """
    for (dataset, _), page in table.pages.items():
        precision, loss, q = page.get("average_precision"), page.get("ranking_loss"), table.size_of(dataset).q
        if not (precision and loss and precision.mean and loss.mean and q):
            continue
        least, most = 1 - (q - 1) * loss.mean.high / 2, 1 - max(loss.mean.low, 0) / q
        if precision.mean.low > most or precision.mean.high < least:
            why = f"a ranking loss of {loss.mean.text} with {q} labels allows {max(least, 0):.4f} <= AP <= {most:.4f}"
            yield _fault("average_precision_and_ranking_loss", precision, loss, "", why)


@audit_check
def micro_f1_and_hamming(table: AuditTable) -> Iterator[AuditFinding]:
    """Check 2 (c - a) / (2 c - a) <= micro F1 <= 2 c / (2 c + a), with a = q HL errors and c labels per row.

    With t hits per row micro F1 is 2 t / (2 t + a), which rises with t; t <= c, and the c - t missed labels are errors,
    so t >= c - a. A mean over folds is between the smallest and the largest fold; with R folds and sample deviation s
    these are within (R - 1) s / sqrt R of the mean (R = 10 if not stated). 10 % of c are allowed, for c is usually that
    of all data. Where the accuracy of a column is 1 - HL, both ways to the loss are checked.
    """
    for (dataset, method), page in table.pages.items():
        f1, size = page.get("micro_f1"), table.size_of(dataset)
        if not (f1 and f1.mean and size.q and size.cardinality):
            continue
        losses = []
        loss, accuracy = page.get("hamming_loss"), page.get("accuracy")
        if loss and loss.mean:
            losses.append((loss, loss.mean.value, f"Hamming loss {loss.mean.text}"))
        if accuracy and accuracy.mean and (accuracy.table, method) in table.complements:
            losses.append((accuracy, 1 - accuracy.mean.value, f"Hamming loss 1 - {accuracy.mean.text}"))
        for cell, value, text in losses:
            assert cell.mean
            runs = size.runs or 10
            reach = cell.mean.half + (cell.std.high * (runs - 1) / runs**0.5 if cell.std else 0.0)
            few, many = size.q * max(value - reach, 0), size.q * (value + reach)
            big, small = 1.1 * size.cardinality, 0.9 * size.cardinality
            most = 2 * big / (2 * big + few)
            least = 2 * (small - many) / (2 * small - many) if small > many else 0.0
            if f1.mean.low > most or f1.mean.high < least:
                why = (
                    f"{text} with {size.q} labels, {size.cardinality:g} per row, allows micro F1 in [{least:.3f}, "
                    f"{most:.3f}]: a misprint, or other data"
                )
                yield _fault("micro_f1_and_hamming", f1, cell, f"in [{least:.3f}, {most:.3f}]", why)
                break
