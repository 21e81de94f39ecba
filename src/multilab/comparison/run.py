"""A comparison within a budget of time: plan, fit, tune, recommend."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from multilab.cells.cell import Cell, split_refs
from multilab.cells.execute import slots
from multilab.cells.rows import indices, ref_with_grams
from multilab.cells.store import Store
from multilab.comparison import Recommendation, recommend
from multilab.comparison.curve import learning_curve
from multilab.comparison.decisions import Effects, held_out_effects, objective_of, tuned_decisions, tuned_name
from multilab.comparison.display import Display
from multilab.comparison.fits import run_methods
from multilab.comparison.plan import (
    DEFAULT_FOLDS,
    MethodRun,
    Request,
    Sizes,
    duration,
    in_order,
    plan_methods,
    refused_for_missing_labels,
    refused_grams,
    total,
)
from multilab.comparison.portfolio import Portfolio, load_portfolio
from multilab.comparison.results import Results
from multilab.comparison.scores import CellScores
from multilab.datasets import card, load
from multilab.datasets.table_encoder import texts_of
from multilab.methods.labels import has_unobserved
from multilab.methods.word_weights import is_bag_of_words
from multilab.metrics import per_label
from multilab.metrics.registry import defined
from multilab.statistics import Leaderboard

__all__ = ["closing_text", "compare_within_budget", "method_runs", "value_text"]

_SHARE_OF_FITS = 0.7
"""Share of the budget for the fits; the rest is for thresholds and the learning curve."""


def compare_within_budget(request: Request) -> Results:
    """Print the plan, fit the methods on the same folds, tune thresholds, and recommend one."""
    began, store, n_jobs = time.monotonic(), Store(), slots()
    portfolio = load_portfolio()
    entries, sizes, facts = method_runs(request, portfolio)
    entries = in_order(plan_methods(entries, sizes, store), portfolio, sizes)
    print(_plan_text(request, entries, sizes, n_jobs), flush=True)

    metrics = tuple(dict.fromkeys([request.metric, *portfolio.metrics]))
    data = load(request.dataset)
    scores = CellScores(data.Y, store, metrics, data.label_names)
    end = began + request.budget
    fits_end = began + _SHARE_OF_FITS * request.budget
    with Display(entries, scores, f"{request.dataset}, {request.cv} folds", end, n_jobs) as display:
        run_methods(entries, store, request.budget, fits_end, n_jobs, display)
        board = scores.leaderboard(entries, portfolio.alpha)
        effects = labels = curve = None
        finished = {entry.name: entry for entry in entries if entry.name not in board.failures}
        if set(finished) - {portfolio.baseline}:
            display.message("thresholds and calibration on held-out scores")
            # the baseline first: tuned methods are compared with the tuned baseline, too
            order = [portfolio.baseline, *board.table.index]
            ordered = [finished[name] for name in dict.fromkeys(map(str, order)) if name in finished]
            # the rest of the time is for the learning curve
            middle = time.monotonic() + 0.6 * max(end - time.monotonic(), 0)
            effects = held_out_effects(ordered, scores, sizes, request.metric, middle, n_jobs, portfolio.baseline)
        final = _final_board(board, effects)
        titles = {entry.name: entry.member.description for entry in entries}
        recommendation = recommend(
            final,
            (portfolio.baseline, tuned_name(portfolio.baseline)),
            titles=titles,
            command=lambda row: "".join(_commands(request, entries, final, row)),
        )
        row = recommendation.method or ""
        chosen = finished.get(final.untuned.get(row, row))
        if chosen is None and set(finished) - {portfolio.baseline}:  # the best, though not better than the baseline
            chosen = next(finished[str(n)] for n in board.table.index if n != portfolio.baseline)
        if chosen is not None:
            labels = label_table(chosen, scores, request, tuned=row in final.untuned)
            display.message(f"learning curve of {chosen.name}")
            curve = learning_curve(chosen, scores, sizes, end, n_jobs)
    return Results(
        request,
        entries,
        scores,
        board,
        final,
        _completed(recommendation, chosen, effects, request),
        _commands(request, entries, final, row) if chosen else [_search(request)],
        facts,
        portfolio.baseline,
        time.monotonic() - began,
        chosen.name if chosen else "",
        effects,
        labels,
        curve,
    )


def method_runs(request: Request, portfolio: Portfolio) -> tuple[list[MethodRun], Sizes, dict[str, object]]:
    """Return the methods with their cells, the sizes of the dataset, and what identifies it."""
    refs = split_refs(request.dataset, request.protocol)
    data = load(request.dataset)
    # of a table with text the words stay as they are, see `multilab.cells.Scaling`, and its other columns have scales
    texts = texts_of(data.kinds or {})
    bag = data.kinds is None and is_bag_of_words(data.X)
    chosen = portfolio.select(request.methods, sparse=issparse(data.X), text=bool(texts), bag=bag)
    if all(member.name != portfolio.baseline for member in chosen):
        chosen = [portfolio.members[portfolio.baseline], *chosen]
    train, test = indices(refs[0])  # also keeps the data in this process, from which the workers are forked
    share = len(train) / (len(train) + len(test))
    sizes = Sizes.of(data, share)
    entries = []
    for member in chosen:
        own_refs = map(ref_with_grams, refs) if member.chars else refs
        entries.append(MethodRun(member, [Cell("train", ref, member.method) for ref in own_refs]))
        if member.chars and (refusal := refused_grams(data.X, texts, len(refs), request.budget)):
            entries[-1].status, entries[-1].note = "left out", refusal
    if has_unobserved(data.Y):
        for entry in entries:
            entry.note = entry.note or refused_for_missing_labels(entry)
            entry.status = "left out" if entry.note else entry.status
    facts = {
        "name": request.dataset,
        "title": card(request.dataset).title,
        "digest": refs[0].dataset_digest,
        "rows": sizes.n,
        "features": sizes.d,
        "labels": sizes.q,
    }
    return entries, sizes, facts


def _plan_text(request: Request, entries: Sequence[MethodRun], sizes: Sizes, n_jobs: int) -> str:
    """Return the plan: an estimate per method in running order, and what will not fit."""
    lines = [
        f"{request.dataset}: {sizes.n} rows, {sizes.d} features, {sizes.q} labels; {request.cv} stratified folds, "
        f"{n_jobs} fits at a time, budget {duration(request.budget)}",
        f"  {'method':<20}{'estimate for all folds':<38}why",
    ]
    left = _SHARE_OF_FITS * request.budget
    for entry in entries:
        left -= entry.wall(n_jobs)
        late = " (beyond the budget)" if left < 0 and entry.keys else ""
        what = f"left out: {entry.note}; " if entry.status == "left out" else f"{entry.expected(n_jobs) + late:<38}"
        scaled = "[standardised] " if entry.standardised else ""
        lines.append(f"  {entry.name:<20}{what}{scaled}{entry.member.why}".rstrip())
    factors = [entry.factor for entry in entries if entry.seconds]
    accuracy = f"; by size alone, half of such estimates are within a factor {max(factors):.1f}" if factors else ""
    lines.append(f"  together about {duration(total(entries, n_jobs))}{accuracy}")
    return "\n".join(lines)


def _final_board(board: Leaderboard, effects: Effects | None) -> Leaderboard:
    """Return the leaderboard that is recommended from: with tuned thresholds where the metric depends on decisions."""
    if effects is None or effects.thresholds.empty or board.headline != effects.objective:
        return board
    return effects.board(board, board.headline)


def label_table(entry: MethodRun, scores: CellScores, request: Request, tuned: bool) -> pd.DataFrame:
    """Return the metrics of every label over the held-out rows of all folds, with tuned thresholds or without."""
    data, objective = load(request.dataset), objective_of(request.metric)
    rows = np.concatenate([indices(cell.split_ref)[1] for cell in entry.cells])
    predicted = np.vstack([scores.store.arrays(cell.key)["scores"] for cell in entry.cells])
    decisions = [
        tuned_decisions(cell, held_out, scores, objective) if tuned else scores.decisions(cell)
        for cell, held_out in zip(entry.cells, entry.held_out, strict=True)
    ]
    return per_label(data.Y[rows], predicted, np.vstack(decisions), label_names=list(data.label_names))


def _completed(
    recommendation: Recommendation, chosen: MethodRun | None, effects: Effects | None, request: Request
) -> Recommendation:
    """Add what to do if nothing finished, why there are no thresholds, or which of two estimates to report."""
    if chosen is None:
        text = "Without --method, `multilab fit` tries the same methods and always ends with a model."
        return replace(recommendation, sentences=(*recommendation.sentences, text))
    if recommendation.method is None:
        return recommendation
    added = ""
    if recommendation.method == tuned_name(chosen.name):
        added = (
            f"Report the {defined(request.metric).title} that `multilab fit` prints, not this one: it belongs to the "
            "fitted model; here, the thresholds were tuned on different inner folds."
        )
    elif effects and effects.objective == request.metric and chosen.name in effects.left_out:
        added = f"Tuned thresholds of {chosen.name} were not tried: {effects.left_out[chosen.name]}."
    return replace(recommendation, sentences=tuple(filter(None, (*recommendation.sentences, added))))


def _commands(request: Request, entries: Sequence[MethodRun], board: Leaderboard, row: str) -> list[str]:
    """Return the command that fits a row of the leaderboard; none for a method without a file in ``conf/method``."""
    method = board.untuned.get(row, row)
    member = next((entry.member for entry in entries if entry.name == method), None)
    if member is None or not member.in_conf:
        return []
    options: dict[str, Any] = {
        "dataset": request.dataset,
        "method": member.base,
        "chars": True if member.chars else None,
        "set": [f"{name}={value_text(value)}" for name, value in member.changes.items()],
        "decision": objective_of(request.metric) if row in board.untuned else None,
        "cv": None if request.cv == DEFAULT_FOLDS else request.cv,
    }
    words = ["multilab", "fit"]
    for name, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            words += [] if item is None else [f"--{name}"] if item is True else [f"--{name}", str(item)]
    return [shlex.join([*words, "--register", request.dataset])]


def _search(request: Request) -> str:
    """Return the command that ends with a model if no method finished here."""
    options = ["--budget", f"{request.budget:g}s", "--metric", request.metric, "--register", request.dataset]
    return shlex.join(["multilab", "fit", "--dataset", request.dataset, *options])


def value_text(value: object) -> str:
    """Return a value as a setting of the command line."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


def closing_text(results: Results) -> str:
    """Return the leaderboard, what did not finish, the recommendation and what to run next."""
    board, request = results.board, results.request
    names = [request.metric, *[m for m in board.directions if m != request.metric][:4]]
    table = board.table[names].map(lambda v: f"{v:.4f}" if v == v else "-")
    table["fit seconds"] = board.table["fit_seconds"].map(lambda v: f"{v:.3g}")
    lines = [table.rename_axis(None).to_string()] if len(table) else []
    lines += [f"{entry.name}: {entry.status}: {entry.note}" for entry in results.entries if entry.note]
    lines += ["", str(results.recommendation), ""]
    lines += [f"next: {line}" for line in results.commands]
    locations = f"the fits are kept in {results.scores.store.root}, the report is {request.out}/index.html"
    lines.append(f"{duration(results.seconds)}; {locations}")
    return "\n".join(lines)
