"""Checks of what a column holds: which variant of a metric, which rule for ties, which offset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.printed_table import AuditCell, AuditTable, TestSize, sums_to_one


@audit_check
def accuracy_is_one_minus_hamming(table: AuditTable) -> Iterator[AuditFinding]:
    """Report columns whose accuracy is 1 - Hamming loss, and their rows where the two do not sum to 1.

    Jaccard's index of a row with h true and predicted labels and e errors is (h - e) / h or, with t = h - e hits,
    t / (t + e) <= 1 - e / q since t + e <= q; it is equal to 1 - Hamming loss in each row only if every row without
    error is right and every other one has no correct negative. A column in which the two sum to 1 in most rows holds
    1 - Hamming loss. It is a fault where other columns of the table hold another accuracy.
    """
    by_method: dict[str, list[tuple[AuditCell, AuditCell]]] = defaultdict(list)
    for (_, method), page in table.pages.items():
        accuracy, loss = page.get("accuracy") or page.get("jaccard"), page.get("hamming_loss")
        if accuracy and loss:
            by_method[method].append((accuracy, loss))
    complements = {method for _, method in table.complements}
    for method, pairs in by_method.items():
        if method not in complements:
            continue
        right = [pair for pair in pairs if sums_to_one(*pair)]
        mixed = bool(set(by_method) - complements)
        yield AuditFinding(
            "accuracy_is_one_minus_hamming",
            "fault" if mixed else "note",
            ", ".join(dict.fromkeys(a.table for a, _ in pairs if a.table)),
            "",
            method,
            pairs[0][0].metric,
            "accuracy",
            "1 - Hamming loss",
            f"the two sum to 1 in {len(right)} of {len(pairs)} rows"
            + ("; the other columns hold another accuracy: the numbers cannot be compared" if mixed else ""),
        )
        for accuracy, loss in pairs:
            if not sums_to_one(accuracy, loss):
                yield _wrong_sum(accuracy, loss)
    for page in table.pages.values():
        accuracy, loss = page.get("accuracy_1mHL"), page.get("hamming_loss")
        if accuracy and loss and not sums_to_one(accuracy, loss):
            yield _wrong_sum(accuracy, loss)


def _wrong_sum(accuracy: AuditCell, loss: AuditCell) -> AuditFinding:
    assert accuracy.mean
    assert loss.mean
    a, h = accuracy.mean, loss.mean
    return AuditFinding(
        "accuracy_is_one_minus_hamming",
        "fault",
        accuracy.table,
        accuracy.dataset,
        accuracy.method,
        f"{accuracy.metric}, {loss.metric}",
        f"{a.text}, {h.text}",
        f"accuracy {a.like(1 - h.value)} or Hamming loss {h.like(1 - a.value)}",
        f"{a.text} + {h.text} = {a.like(a.value + h.value)}, not 1",
    )


_COVERAGES = {
    "0": "counted from 0",
    "1": "counted from 1",
    "q": "counted from 0, divided by q",
    "q-1": "counted from 0, divided by q - 1",
}


def _impossible(
    rule: str, value: float, half: float, size: TestSize, ranking_loss: float | None
) -> tuple[str, bool] | None:
    """Return why a coverage cannot follow a rule and whether by its ranking loss, ``None`` if it can.

    Of a row with p of q labels and a share r of wrong pairs the last relevant label has at least the mean number of
    irrelevant ones above it, r (q - p), hence a coverage C >= p - 1 + r (q - p) >= max(p - 1, r (q - 1)) counted from
    0; C <= q - 1. Means over rows keep both. A cardinality is that of all data: 5 % are allowed.
    """
    q, cardinality = size.q, size.cardinality
    scale = {"0": 1.0, "1": 1.0, "q": float(q or 0), "q-1": float((q or 1) - 1)}[rule]
    shift = 1.0 if rule == "1" else 0.0
    if rule in ("q", "q-1"):
        if value - half > 1:
            return f"{value:g} > 1", False
        if not q or scale == 0:
            return None
    count, slack = value * scale - shift, half * scale + 1e-9
    if count + slack < 0:
        return f"{value:g} < 1", False
    if q and count - slack > q - 1:
        return f"{value:g} > {q if rule == '1' else q - 1}", False
    if cardinality and count + slack < 0.95 * cardinality - 1:
        least = (cardinality - 1 + shift) / scale
        return f"{value:g} is less than {least:.3f} of {cardinality:g} labels per row", False
    if q and ranking_loss is not None and count + slack < 0.98 * ranking_loss * (q - 1):
        least = (ranking_loss * (q - 1) + shift) / scale
        return f"{value:g} is less than {least:.3f} of a ranking loss of {ranking_loss:g}", True
    return None


@audit_check
def coverage_rule(table: AuditTable) -> Iterator[AuditFinding]:
    """Report how a column of coverages is counted: from 0, from 1, or divided by the number of labels.

    A rule is excluded if more than 5 % of the cells (at least one) are impossible under it; if none is left, the one
    with the fewest stays. Cells that are impossible under all that are left are faults. If it is the ranking loss that
    at least two cells of a method contradict, the two metrics treat ties differently: a tie that is an error in one is
    broken by the order of labels in the other. That is a note.
    """
    for (name, metric), cells in table.groups.items():
        quantity = cells[0].quantity
        if not quantity or quantity.name != "coverage":
            continue
        reasons: dict[str, list[tuple[AuditCell, str, bool]]] = {rule: [] for rule in _COVERAGES}
        for cell in cells:
            assert cell.mean
            loss = table.pages[cell.dataset, cell.method].get("ranking_loss")
            for rule, failed in reasons.items():
                r = loss.mean.low if loss and loss.mean else None
                fault = _impossible(rule, cell.mean.value, cell.mean.half, table.size_of(cell.dataset), r)
                if fault:
                    failed.append((cell, *fault))
        left = [rule for rule, failed in reasons.items() if len(failed) <= 0.05 * len(cells)]
        if not left:
            left = [min(reasons, key=lambda rule: len(reasons[rule]))]
        excluded = [
            f"{_COVERAGES[rule]}: {failed[0][0].dataset}, {failed[0][0].method}: {failed[0][1]}"
            for rule, failed in reasons.items()
            if rule not in left
        ]
        shares = left and set(left) <= {"q", "q-1"}
        if excluded:
            yield AuditFinding(
                "coverage_rule",
                "note",
                name,
                metric=metric,
                printed="coverage",
                right=" or ".join(_COVERAGES[rule] for rule in left),
                why=("a share of the labels; " if shares else "") + "excluded: " + "; ".join(excluded),
            )
        failed_in_all = set.intersection(*({id(cell) for cell, _, _ in reasons[rule]} for rule in left))
        contradicted: dict[str, list[tuple[AuditCell, str, bool]]] = defaultdict(list)
        for cell, why, by_ranking_loss in reasons[left[0]]:
            if id(cell) in failed_in_all:
                contradicted[cell.method].append((cell, why, by_ranking_loss))
        for method, group in contradicted.items():
            cell, why, _ = group[0]
            assert cell.mean
            if len(group) >= 2 and all(by_ranking_loss for _, _, by_ranking_loss in group):
                why = f"smaller than the ranking loss allows on {len(group)} datasets ({cell.dataset}: {why})"
                right = "ties are errors in the ranking loss only"
                yield AuditFinding("coverage_rule", "note", name, "", method, metric, "coverage", right, why)
                continue
            for cell, why, by_ranking_loss in group:
                assert cell.mean
                both = f"{metric}, ranking_loss" if by_ranking_loss else metric
                names = (name, cell.dataset, method, both)
                yield AuditFinding("coverage_rule", "fault", *names, cell.mean.text, "", why)


@audit_check
def coverage_counted_otherwise(table: AuditTable) -> Iterator[AuditFinding]:
    """Report columns whose coverage is 1 larger than the ranking loss lets expect from the other columns.

    On a dataset, the excess C - r (q - 1) of the coverage over its smallest value at a ranking loss r differs little
    between methods. A column is reported whose excess is larger than the median of the others by 1 to within .3 (and to
    within .1 in the median) on all of at least three datasets.
    """
    excess: dict[str, dict[str, float]] = defaultdict(dict)
    cells = {}
    for (dataset, method), page in table.pages.items():
        coverage, loss, q = page.get("coverage"), page.get("ranking_loss"), table.size_of(dataset).q
        if coverage and loss and q and coverage.mean and loss.mean:
            excess[dataset][method] = coverage.mean.value - loss.mean.value * (q - 1)
            cells[method] = coverage
    for method, cell in cells.items():
        gaps = []
        for values in excess.values():
            others = [value for name, value in values.items() if name != method]
            if method in values and len(others) >= 2:
                gaps.append(values[method] - median(others))
        if len(gaps) >= 3 and all(abs(gap - 1) <= 0.3 for gap in gaps) and abs(median(gaps) - 1) <= 0.1:
            yield AuditFinding(
                "coverage_counted_otherwise",
                "fault",
                cell.table,
                "",
                method,
                cell.metric,
                "coverage",
                "counted from 1 where the others count from 0",
                f"larger by {min(gaps):.2f} to {max(gaps):.2f} than its ranking loss and the other columns let expect, "
                f"on {len(gaps)} datasets",
            )


@audit_check
def macro_f1_by_example(table: AuditTable) -> Iterator[AuditFinding]:
    """Report columns whose macro F1 looks like an F1 averaged over examples.

    A note, not a proof: in three of four rows (at least four) macro F1 and example F1 differ by less than 10 %, while
    in the median other column the third quartile of the difference is above 25 %. Under this reading macro F1 is at
    most the F1 of mean precision and recall (Jensen: 2 p r / (p + r) is concave), so a row in which it is far above the
    example F1 does not fit and is a fault.
    """
    pairs: dict[str, list[tuple[AuditCell, AuditCell]]] = defaultdict(list)
    for (_, method), page in table.pages.items():
        if "macro_f1" in page and "example_f1" in page:
            pairs[method].append((page["macro_f1"], page["example_f1"]))
    gaps = {method: _third_quartile(rows) for method, rows in pairs.items() if len(rows) >= 4}
    others = [gap for gap in gaps.values() if gap >= 0.1]
    if len(others) < 2 or median(others) < 0.25:
        return
    for method, gap in gaps.items():
        if gap >= 0.1:
            continue
        below = sum(m.mean.low <= e.mean.high for m, e in pairs[method] if m.mean and e.mean)
        yield AuditFinding(
            "macro_f1_by_example",
            "note",
            ", ".join(dict.fromkeys(m.table for m, _ in pairs[method] if m.table)),
            "",
            method,
            pairs[method][0][0].metric,
            "macro F1",
            "probably F1 averaged over examples, not over labels",
            f"third quartile of the gap to the example F1 {gap:.0%} (other columns {median(others):.0%}); not above it "
            f"in {below} of {len(pairs[method])} rows",
        )
        for m, e in pairs[method]:
            assert m.mean
            assert e.mean
            if m.mean.low > 1.2 * e.mean.high and below >= 0.8 * len(pairs[method]):
                yield AuditFinding(
                    "macro_f1_by_example",
                    "fault",
                    m.table,
                    m.dataset,
                    method,
                    m.metric,
                    m.mean.text,
                    f"at most {e.mean.text}",
                    f"an example-averaged F1 cannot exceed the F1 of mean precision and recall, {e.mean.text}",
                )


def _third_quartile(rows: Sequence[tuple[AuditCell, AuditCell]]) -> float:
    gaps = [
        abs(m.mean.value - e.mean.value) / max(m.mean.value, e.mean.value, 0.01) for m, e in rows if m.mean and e.mean
    ]
    return sorted(gaps)[(3 * (len(gaps) - 1) + 3) // 4]


@audit_check
def f1_of_mean_precision_and_recall(table: AuditTable) -> Iterator[AuditFinding]:
    """Report columns whose F1 is the harmonic mean of the printed precision and recall, not the mean of F1 values.

    The two agree for micro averages on one test set. For averages over examples, labels or folds the mean of F1 is
    smaller (Jensen) unless all rows agree; a column in which it is equal in at least three rows and all is reported.
    """
    for average in ("example", "macro"):
        rows: dict[str, list[tuple[AuditCell, bool]]] = defaultdict(list)
        for (_, method), page in table.pages.items():
            parts = [page.get(f"{average}_{part}") for part in ("f1", "precision", "recall")]
            if not all(parts):
                continue
            f, p, r = (part.mean for part in parts if part)
            if f and p and r and p.value + r.value > 0:
                slack = 2 * (p.half + r.half)
                rows[method].append((parts[0], f.holds(2 * p.value * r.value / (p.value + r.value), slack)))  # type: ignore[arg-type]
        for method, values in rows.items():
            if len(values) >= 3 and all(equal for _, equal in values):
                cell = values[0][0]
                why = f"2 p r / (p + r) of the printed precision and recall in {len(values)} of {len(values)} rows"
                yield AuditFinding(
                    "f1_of_mean_precision_and_recall", "note", cell.table, "", method, cell.metric, "F1",
                    "F1 of mean precision and recall", why,
                )  # fmt: skip


@audit_check
def ties_as_errors(table: AuditTable) -> Iterator[AuditFinding]:
    """Report ranking losses above 1/2 of methods whose ranking is better than chance.

    A random order has a ranking loss of 1/2. If ties count 1/2, a loss above it means an order worse than chance; crisp
    outputs, most of which tie, have such losses where a tie counts as an error. A note per method.
    """
    by_method = defaultdict(list)
    for (_, method), page in table.pages.items():
        loss, auc = page.get("ranking_loss"), page.get("macro_auc")
        if loss and loss.mean and loss.mean.low > 0.5 and (not auc or not auc.mean or auc.mean.value > 0.5):
            by_method[method].append((loss, auc))
    for method, rows in by_method.items():
        loss, auc = rows[0]
        assert loss.mean
        better = f" with a macro AUC of {auc.mean.text}" if auc and auc.mean else ""
        yield AuditFinding(
            "ties_as_errors",
            "note",
            loss.table,
            "" if len(rows) > 1 else loss.dataset,
            method,
            loss.metric,
            loss.mean.text,
            "tied labels counted as errors, as of crisp outputs",
            f"above 1/2 on {len(rows)} datasets ({loss.dataset}: {loss.mean.text}{better})",
        )


@audit_check
def predicts_no_label(table: AuditTable) -> Iterator[AuditFinding]:
    """Report methods whose Hamming loss is the label density, which is that of predicting no label.

    Without predictions every error is a missed label: the loss is cardinality / q. A note per method, for at least
    three datasets within 4 %, where neither F1 nor accuracy contradicts. An accuracy or example F1 above 0 is then the
    share of rows without labels, and both empty counts 1.
    """
    rows: dict[str, list[str]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    empty: dict[str, str] = {}
    cells = {}
    for (dataset, method), page in table.pages.items():
        size, loss = table.size_of(dataset), page.get("hamming_loss")
        if not (size.q and size.cardinality and loss and loss.mean):
            continue
        seen[method] += 1
        density = size.cardinality / size.q
        micro = page.get("micro_f1")
        if abs(loss.mean.value - density) > 0.04 * density + loss.mean.half or (
            micro and micro.mean and micro.mean.value > 0.1
        ):
            continue
        rows[method].append(f"{dataset} {loss.mean.text} ({density:.4f})")
        cells[method] = loss
        accuracy = page.get("jaccard") or page.get("accuracy")
        if (
            accuracy
            and accuracy.mean
            and accuracy.mean.value > 0.2
            and (accuracy.table, method) not in table.complements
        ):
            empty[method] = f"; on {dataset} the accuracy {accuracy.mean.text} is the share of rows without labels"
    for method, texts in rows.items():
        if len(texts) >= 3 and len(texts) > 0.5 * seen[method]:
            yield AuditFinding(
                "predicts_no_label",
                "note",
                cells[method].table,
                "",
                method,
                cells[method].metric,
                "Hamming loss",
                "the label density: predicts no label",
                f"on {len(texts)} of {seen[method]} datasets: {', '.join(texts[:5])}{empty.get(method, '')}",
            )
