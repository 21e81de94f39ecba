"""The table of a comparison's page."""

from __future__ import annotations

import pandas as pd

from multilab.reports.comparison_page import _leaderboard_rows
from multilab.statistics import Leaderboard


def test_methods_are_in_the_order_of_their_ranks_not_of_their_means() -> None:
    values = {"steady": (0.3, 0.3, 0.3), "lucky": (0.9, 0.2, 0.2), "poor": (0.1, 0.1, 0.1)}
    rows = [("x", split, name, "macro_f1", v) for name, each in values.items() for split, v in enumerate(each)]
    seconds = [("x", split, name, "fit_seconds", 1.0) for name in values for split in range(3)]
    scores = pd.DataFrame(rows + seconds, columns=["dataset", "split", "method", "metric", "value"])
    board = Leaderboard(scores, {"macro_f1": "max"}, test_to_train=0.5)
    assert board.table.index[0] == "lucky"
    table = _leaderboard_rows(board)
    assert [(row["name"], row["rank"]) for row in table] == [("steady", "1.33"), ("lucky", "1.67"), ("poor", "3.00")]
    assert [row["values"][0] for row in table] == [("0.3000", False), ("0.4333", True), ("0.1000", False)]
