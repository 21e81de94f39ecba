"""The commands ``evaluate`` and ``decide``: models from elsewhere, by files of their scores."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from multilab.cli.files import naming_flags
from multilab.cli.options import COUNT, FILE, FOLDS, LEVEL, METRIC, SEED, output_option
from multilab.core import MultilabError, write_atomically
from multilab.core.messages import pip_install, unknown_name
from multilab.core.text import comma_separated, visible

_FEW = 6  # metrics of the table on the terminal
RULES = "rules.json"


def _limits(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Return the limits of ``macro_f1=0.5``."""
    limits = {}
    for value in values:
        name, equals, number = value.partition("=")
        try:
            limits[name.strip()] = float(number)
        except ValueError:
            raise click.BadParameter(f"{value!r} is not of the form macro_f1=0.5.", ctx, option) from None
        if not equals:
            raise click.BadParameter(f"{value!r} is not of the form macro_f1=0.5.", ctx, option)
    return limits


def _file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how files of labels and scores are matched."""
    for option in (
        click.option(
            "--in-order",
            is_flag=True,
            help="Match by position where a file has no row identifiers or label names (an npz of one matrix).",
        ),
        click.option(
            "--separator", metavar="TEXT", help="Separator of tags and lists (default: | ; or , whichever occurs)."
        ),
        click.option(
            "--id",
            "id_column",
            metavar="COLUMN",
            help="Column of the row identifiers (default: id); A,B names one for each file.",
        ),
    ):
        function = option(function)
    return function


@click.command()
@click.argument("truth", type=FILE)
@click.argument("scores", type=FILE, nargs=-1, required=True)
@click.option(
    "--kind",
    default="probabilities",
    show_default=True,
    metavar="KIND,...",
    help="What the scores are: probabilities, logits, decisions (0/1) or top (lists of the k best labels); one kind "
    "for all files, or one for each.",
)
@click.option("--tags", metavar="COLUMN", help="Column of TRUTH with the tags of each row (default: 0/1 columns).")
@click.option("--labels", metavar="A,B", help="The labels to evaluate (default: all of TRUTH).")
@_file_options
@click.option(
    "--metric", type=METRIC, default="macro_f1", show_default=True, help="First metric, for tests and thresholds."
)
@click.option("--rules", type=FILE, help="Decide by these rules of an earlier evaluation; tune nothing.")
@click.option(
    "--fail-below",
    metavar="METRIC=VALUE",
    multiple=True,
    callback=_limits,
    help="Exit with 1 if the first file is below VALUE (of a loss: above), by the decisions of --rules, else by its "
    "own ones; repeatable.",
)
@click.option("--level", type=LEVEL, default=0.05, show_default=True, help="Significance level of the tests.")
@click.option("--cv", type=FOLDS, default=5, show_default=True, help="Folds of the cross-fitted thresholds.")
@click.option("--draws", type=COUNT, default=1000, show_default=True, help="Draws of the bootstrap.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of folds and draws.")
@click.option("-o", "--output", metavar="FOLDER", type=FILE, help="Folder of the page, the tables and rules.json.")
def evaluate(
    truth: Path,
    scores: tuple[Path, ...],
    kind: str,
    tags: str | None,
    labels: str | None,
    id_column: str | None,
    separator: str | None,
    in_order: bool,
    metric: str,
    rules: Path | None,
    fail_below: dict[str, float],
    level: float,
    cv: int,
    draws: int,
    seed: int,
    output: Path | None,
) -> int:
    """Evaluate scores of models that were fitted elsewhere.

    \b
    multilab evaluate truth.csv scores.csv -o reports/net           one model: page, tables, rules.json
    multilab evaluate truth.csv logits.npz --kind logits            scores of a network
    multilab evaluate films.csv top.csv --tags genres --kind top    tags, and lists of the k best labels
    multilab evaluate truth.csv new.csv old.csv                     a paired test of old.csv against new.csv
    multilab evaluate truth.csv scores.csv --rules rules.json --fail-below macro_f1=0.5

    TRUTH has a column of row identifiers and 0/1 columns, or a column of tags; an empty cell is a label that was not
    observed. SCORES have the same identifiers and a column per label, or the columns id, label and score with a line
    per row and label. Files are CSV, TSV, Parquet, or npz with one matrix, dense or sparse, and the vectors ids and
    labels. No model may have been fitted to these rows.

    The table shows each model with its own decisions (probabilities of at least .5) and with thresholds that were
    tuned on the other folds. The folder of --output gets the page, the tables as CSV, evaluation.json, and rules.json:
    thresholds and calibration of the first file, learned on all rows, for `multilab decide`.

    Exit code: 0, 1 if a check of --fail-below failed, 2 for a file that does not fit. In Python: from multilab import
    evaluate.
    """
    from multilab.comparison.evaluating import METRICS, evaluate_tables
    from multilab.comparison.score_files import KINDS, by_position, read_scores, read_truth, refuse_lost_names
    from multilab.decision import DecisionRules
    from multilab.metrics.registry import ALL_METRICS, defined

    kinds = _for_each("--kind", kind, len(scores), "files of scores")
    columns = _for_each("--id", id_column, 1 + len(scores), "files (TRUTH is the first one)")
    for name in kinds:
        if name not in KINDS:
            raise click.UsageError(f"--kind: {unknown_name('kind', name, KINDS)}.")
    for name in (metric, *fail_below):
        if name not in ALL_METRICS:
            raise MultilabError(unknown_name("metric", name, ALL_METRICS))
    for path in (truth, *scores):
        path.stat()  # a missing file is refused before the others are parsed
    known = None if rules is None else DecisionRules.load(rules)
    chosen = comma_separated(labels) if labels else None
    with naming_flags():
        table = read_truth(truth, id_column=columns[0], tags=tags, labels=chosen, separator=separator)
        tables = [
            read_scores(path, each, id_column=column, separator=separator)
            for path, each, column in zip(scores, kinds, columns[1:], strict=True)
        ]
    if chosen is not None:
        tables = [each.only(chosen) for each in tables]
    refuse_lost_names(table, tables, in_order=in_order, chosen=chosen is not None)
    result = evaluate_tables(
        table,
        tables,
        kinds,
        names=_names(scores),
        metric=metric,
        metrics=dict.fromkeys([*METRICS, *fail_below]),
        rules=known,
        cv=cv,
        alpha=level,
        n_draws=draws,
        random_state=seed,
    )
    result = replace(result, notes=(*by_position(table, tables), *result.notes))
    print(*map(visible, _shown(result)), sep="\n")
    failed, checks = False, []
    for name, limit in fail_below.items():
        value = result.value(name)
        passed = value >= limit if defined(name).direction == "max" else value <= limit
        failed |= not passed
        side = "below" if defined(name).direction == "max" else "above"
        outcome = "passed" if passed else f"FAILED, it is {side} {limit:g}"
        decided = "the model's own decisions" if rules is None else f"decided by {rules}"
        what = f"{name} ({decided})" if defined(name).needs == "decisions" else name
        checks.append(f"check {what}: {value:.4f}, limit {limit:g}: {outcome}")
    print(*checks, sep="\n", end="\n" if checks else "")
    if output is not None:
        settings = {
            "command": _as_typed(click.get_current_context()),
            **{"truth": str(truth), "scores": [*map(str, scores)], "kind": kinds, "metric": metric, "seed": seed},
        }
        matching = {"--id": columns[1], "--separator": separator}
        options = [word for option, value in matching.items() if value is not None for word in (option, value)]
        options += ["--in-order"] if in_order else []
        _write(result, output, settings, checks, [str(scores[0]), *options])
    return int(failed)


def _for_each(option: str, text: str | None, n: int, of_what: str) -> list[Any]:
    """Return the values ``a,b`` of an option, one for each of n files; a single value is for all of them."""
    values: list[Any] = comma_separated(text) if text else [None]
    if len(values) not in (1, n):
        raise click.UsageError(f"{option} has {len(values)} values for {n} {of_what}.")
    return values * n if len(values) == 1 else values


def _as_typed(ctx: click.Context) -> str:
    """Return the command with its arguments and the options that were given."""
    arguments, options = [], []
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value = ctx.params.get(name)
        if isinstance(parameter, click.Argument):
            arguments += [str(each) for each in (value if isinstance(value, tuple) else (value,))]
        elif ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = max(parameter.opts, key=len)
            if value is True:
                options.append(flag)
            else:
                texts = [f"{key}={number}" for key, number in value.items()] if isinstance(value, dict) else [value]
                options += [word for text in texts for word in (flag, str(text))]
    return shlex.join(["multilab", str(ctx.info_name), *arguments, *options])


def _names(paths: tuple[Path, ...]) -> list[str]:
    """Return names of the models: those of the files, or the paths where two files have the same name."""
    stems = [path.name.partition(".")[0] for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def _shown(result: Any) -> list[str]:
    """Return the summary with the first metrics only, which fit on a line."""
    board = result.board
    few = dict(list(board.directions.items())[:_FEW])
    return str(replace(result, board=replace(board, directions=few))).splitlines()


def _write(result: Any, folder: Path, settings: dict[str, Any], checks: list[str], first: list[str]) -> None:
    """Write the files of an evaluation; ``first`` is the first file of scores and the options that read it."""
    from multilab.core.numbers import finite  # imports NumPy, which help does without

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in result.tables.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
        files.append(f"{name}.csv")
    content = {
        **settings,
        "rows": result.n_rows,
        "values": [finite(row) for row in result.values.to_dict("records")],
        "tests": [finite(row) for row in result.tests.to_dict("records")],
        "gains": [finite(row) for row in result.gains.to_dict("records")],
        "over_assigned": {
            name: [finite(label._asdict()) for label in labels] for name, labels in result.board.over_assigned.items()
        },
    }
    write_atomically(folder / "evaluation.json", json.dumps(content, indent=1, allow_nan=False) + "\n")
    files.append("evaluation.json")
    commands = []
    if rules := result.rules.get(result.models[0]):
        rules.save(folder / RULES)
        files.append(RULES)
        target = ["--rules", str(folder / RULES), "-o", str(folder / "decisions.csv")]
        commands.append(shlex.join(["multilab", "decide", *first, *target]))
    print(*(f"next: {line}" for line in commands), sep="\n", end="\n" if commands else "")
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        print(f"{folder} has no page: {pip_install(*missing)}", file=sys.stderr)
        return
    from multilab.reports.evaluation_page import write_evaluation_page

    title = ", ".join(result.models)
    print(
        write_evaluation_page(result, folder, title, files=files, commands=commands, checks=checks, settings=settings)
    )


@click.command()
@click.argument("scores", type=FILE)
@click.option("--rules", type=FILE, required=True, help="rules.json of `multilab evaluate`.")
@_file_options
@output_option(help="File to write: .csv, .tsv, .json, .jsonl, .parquet, .npz (default: CSV to the terminal).")
def decide(
    scores: Path,
    rules: Path,
    id_column: str | None,
    separator: str | None,
    in_order: bool,
    output: str | None,
) -> None:
    """Decide the labels of new rows by the rules of an evaluation.

    \b
    multilab decide new-scores.csv --rules reports/net/rules.json -o decisions.csv

    SCORES is a file as for `multilab evaluate`, of the kind that the rules were learned from. The result has the
    identifiers, a decision per label and, if the rules have a calibration, a calibrated probability per label. An npz
    has the decisions as a sparse matrix, with the vectors ids and labels.
    """
    from multilab.cli.models import WRITERS, check_output, save_table
    from multilab.comparison.score_files import decided_table, like_probabilities, read_scores, write_npz
    from multilab.decision import DecisionRules

    check_output(output, scores, rules, extensions=(*WRITERS, ".npz"))
    known = DecisionRules.load(rules)
    with naming_flags():
        table = read_scores(scores, known.kind, id_column=id_column, separator=separator)
    if not in_order and table.labels is None:
        raise MultilabError(
            f"{scores}: the file has no label names. Add the vector labels, or pass --in-order if its columns are the "
            f"labels of {rules} in the same order"
        )
    if known.kind == "logits" and like_probabilities(table.values):
        raise MultilabError(
            f"{scores}: all scores are in [0, 1], like probabilities, but {rules} was learned from logits. Pass "
            "logits, or learn the rules with --kind probabilities"
        )
    if not table.open_ended and table.spare is None:
        n_labels = table.values.shape[1]
        table = table.only(known.label_names)
        if left := n_labels - table.values.shape[1]:
            print(f"{scores}: {left} labels are not in {rules} and were left out", file=sys.stderr)
    values = table.for_labels(known.label_names, str(rules), "add it: the rules decide all of their labels")
    if output is not None and output.endswith(".npz"):
        write_npz(output, known.decide(values), known.label_names, table.ids)
    else:
        frame = decided_table(known, values, table.ids, id_column or "id")
        if output is None:
            click.echo(frame.to_csv(index=False, lineterminator="\n").encode(), nl=False)  # UTF-8 in every locale
            return
        save_table(frame, output)
    print(f"{output}: {values.shape[0]} rows, {len(known.label_names)} labels")
