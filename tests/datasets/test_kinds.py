"""Kinds of feature columns: which cells are numbers, dates, text and categories, and what they are worth."""

from __future__ import annotations

import math
import random
import string
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from multilab.datasets.errors import DatasetError
from multilab.datasets.kinds import Kind, kind_of


def kinds(*texts: str, counts: list[int] | None = None) -> str:
    return " or ".join(map(str, kind_of(texts, counts or [1] * len(texts))))


def value(kind: str, text: str) -> float:
    return float(Kind.parse(kind).numbers([text])[0][0])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-2.5", "1e-3", "+4", ".5", "7."], "number"),
        (["true", "FALSE"], "number"),
        (["1,5", "12"], "number:comma"),
        (["0,123", "1,234"], "number:comma"),  # no thousands begin with 0
        (["1,234.5", "12"], "number:point"),
        (["1,234,567", "1,234"], "number:point"),
        (["1.234.567", "1.234"], "number:comma"),
        (["12,34,567", "1,234"], "number:point"),  # India
        (["1 234 567", "12"], "number"),
        (["1\u202f234,5", "12"], "number:comma"),
        (["1\u00a0234.5", "12"], "number"),
        (["1'234.50", "1\u2019234\u2019567"], "number"),
        (["\u22125", "7"], "number"),
        (["39%", "4 %", "0"], "number in %"),
        (["$10.50", "-$3", "$-4"], "number in $"),
        (["1.000,50 €", "€ 3"], "number:comma in €"),
        (["CHF 1'200.50", "3 CHF"], "number in chf"),
        (["90 min", "102min", "80 min."], "number in min"),
        (["1 day", "2 days"], "number in day"),
        (["3.5kg", "100 KG"], "number in kg"),
        (["060Y", "058Y"], "number in Y"),  # a unit makes a quantity of it
    ],
)
def test_numbers_in_disguise(texts, expected):
    assert kinds(*texts) == expected
    assert not Kind.parse(expected).numbers(texts)[1].any()


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "008"],
        ["01234", "98765", "12345"],
        ["+49 170 1234567", "+49 170 1234568"],
        ["+491701234567", "+491701234568"],
        ["(555) 123-4567"],
        ["555 123 4567", "555 123 4568"],
        ["5551234567", "5559876543", "8121234567"],
        ["1234567890123456789", "1234567890123456788"],
        ["192.168.1.1", "10.0.0.1"],
        ["1.2.3", "1.10.0"],
        ["90 min", "2 seasons"],
        ["€5", "$5"],
        ["1st", "2nd", "3rd"],
        ["39%", "0.39"],
        ["10,000+", "5,000+"],
        ["1,5", "1.5"],
        ["yes", "no"],
        ["10:30", "11:20"],
        ["٣", "٤"],
        ["1_000", "2_000"],
        ["inf", "nan", "1e999"],
        [""],
        [],
    ],
)
def test_categories_that_look_like_numbers(texts):
    assert kinds(*texts) == "category"


def test_a_leading_zero_in_one_of_many_codes_of_equal_width_shows_codes():
    codes = [str(k) for k in range(10000, 11000)]
    assert kinds(*codes) == "number"
    assert kinds(*codes, "01234") == "category"


def test_unix_times_have_one_width_and_are_numbers():
    assert kinds("1700000000", "1700000100") == "number"
    assert kinds("1700000000000", "1700000100000") == "number"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1,234"], "number:point or number:comma"),
        (["1,234", "17"], "number:point or number:comma"),
        (["1,234 km", "17 km"], "number:point in km or number:comma in km"),
        (["1,234", "5.600"], "number:point or number:comma"),
        (["01/02/2024", "11/12/2024"], "date:day or date:month"),
        (["01.02.2024 10:00"], "date:day or date:month"),
    ],
)
def test_two_readings_that_remain(texts, expected):
    assert kinds(*texts) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.288", "6.449"], "number"),  # three decimals
        (["1.288", "6.440", "0.500"], "number"),
        (["800", "9.600", "6.512"], "number:comma"),  # 800 would be 800.000
        (["800", "9.612"], "number or number:comma"),  # a program that drops zeros, or thousands
        (["9.600", "12.900", "8.450"], "number or number:comma"),
        (["0", "9.600", "8.413", "12.981"], "number"),
    ],
)
def test_a_point_before_three_digits(texts, expected):
    assert kinds(*texts) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31", "2024/1/31", "2024.01.31"], "date:year"),
        (
            ["2024-01-31T10:00", "2024-01-31 10:00:05.25", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00+01:00"],
            "date:year",
        ),
        (["31.1.2024", "01.02.2024"], "date:day"),
        (["01/02/2024", "31/01/2024 9:30"], "date:day"),
        (["01/02/2024", "1/31/2024"], "date:month"),
        (["1/31/2024 3:45 PM"], "date:month"),
        (["31 Jan 2024", "1 february 2024", "21 Aug, 2012"], "date:day"),
        (["31-JAN-2024"], "date:day"),
        (["September 25, 2021", "Aug 1, 2020", "May 3 2020"], "date:month"),
        (["2024-13-31", "2024-02-31"], "category"),
        (["1234-01-31"], "category"),  # no year of a table
        (["31.01-2024"], "category"),
    ],
)
def test_dates(texts, expected):
    assert kinds(*texts) == expected


def test_99_of_100_cells_have_to_agree():
    assert kinds("1.5", "many", counts=[99, 1]) == "number"
    assert kinds("1.5", "many", counts=[98, 2]) == "category"
    assert kinds("1.5", "many", "n/a", "-", "", ".", "--", counts=[99, 1, 500, 1, 1, 1, 1]) == "number"
    assert kinds("1.5", "1,5", counts=[99, 1]) == "number"
    assert kinds("31.1.2024", "soon", counts=[990, 10]) == "date:day"
    assert kinds("1/2/2024", "1/31/2024", "31/1/2024", counts=[500, 2, 1]) == "date:day or date:month"


def test_cells_with_another_unit_are_unreadable():
    (kind,) = kind_of(["060Y", "013D"], [995, 5])
    values, unreadable = kind.numbers(["060Y", "013D", "7", "-"])
    np.testing.assert_array_equal(values, [60, math.nan, 7, math.nan])
    assert unreadable.tolist() == [False, True, False, False]
    assert value("number", "013D") == 13  # no unit named: any is read


def test_values():
    assert value("number:comma", "-1.234,5 €") == -1234.5
    assert value("number:point", "$-1,234.5") == -1234.5
    assert value("number", "\u22121\u00a0234.5") == -1234.5
    assert value("number", "39%") == 39
    assert math.isnan(value("number in %", "0.39"))
    assert value("date", "1970-01-02T01:00:00+01:00") == 1.0
    assert value("date", "1970-01-02 06:00") == 1.25
    assert value("date", "1970-01-01 12:00 am") == 0.0
    assert value("date:month", "1/1/1970 3:00 PM") == 15 / 24
    assert value("date:day", "31.12.1969") == -1
    for text in ("1970-01-01 24:00", "1970-01-01 10:60", "1970-01-01T10:00+25:00", "1970-01-01 13:00 PM", "1970-02-30"):
        assert Kind.parse("date").numbers([text])[1].all(), text


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"this song number {k} is good" for k in range(30)], "text"),
        ([f"word{k} 猫が好きですから嬉しい" for k in range(30)], "text"),
        ([f"C{'C(=O)' * 30}{k}" for k in range(30)], "text"),  # longer than a category
        ([f"Shop {k}" for k in range(1000)], "category"),
        ([f"AB-{k}" for k in range(10_000)], "category"),
        ([f"https://example.org/{k}" for k in range(30)], "category"),
        ([f"{k} 000 00" for k in range(30)], "category"),
    ],
)
def test_text_and_categories(texts, expected):
    assert kinds(*texts) == expected


def test_few_long_answers_of_a_survey_are_categories_and_repeated_posts_are_text():
    answer = "I would rather not say what I think about the product because I have {} reasons for it"
    assert kinds(*(answer.format(k) for k in range(5)), counts=[100] * 5) == "category"
    assert kinds(*(answer.format(k) for k in range(500)), counts=[3] * 500) == "text"
    assert kinds(*(f"The Return of Film {k}" for k in range(200)), counts=[50] * 200) == "category"
    assert kinds(*(f"The Return of Film {k}" for k in range(200))) == "text"


@pytest.mark.parametrize(
    "kind",
    [
        *("number", "number:point", "number:comma", "number in %", "number:comma in €"),
        *("date:year", "date:day", "date:month", "category", "text"),
    ],
)
def test_str_and_parse_are_inverse(kind):
    assert str(Kind.parse(kind)) == kind


def test_parse():
    assert Kind.parse("date") == Kind("date") == Kind("date", "year")
    assert Kind.parse(" Number:Comma in KG ") == Kind("number", "comma", "kg")
    with pytest.raises(DatasetError, match=r"number:coma.*did you mean 'number:comma'"):
        Kind.parse("number:coma")
    for text in ("", "x" * 10_000, "text:day", "category in kg", "number:day"):
        with pytest.raises(DatasetError, match="is not a kind"):
            Kind.parse(text)
    with pytest.raises(DatasetError, match="category are not numbers"):
        Kind("category").numbers(["a"])


def test_numbers_read_what_was_written():
    rng = random.Random(0)
    for _ in range(3000):
        x = round(rng.uniform(-1, 1) * 10 ** rng.randint(0, 9), rng.randint(0, 6))
        point = f"{x:,.6f}"
        comma = point.translate(str.maketrans(",.", ".,"))
        mark = rng.choice(["", "€", " kg", "%"])
        for kind, text in (
            ("number", repr(x)),
            ("number", f"{x:.17e}"),
            ("number", point.replace(",", rng.choice("\u00a0\u2009\u202f '\u2019"))),
            ("number:point", point),
            ("number:comma", comma),
            ("number:comma", point.replace(",", " ").replace(".", ",")),
        ):
            assert value(kind, text + mark) == x, (kind, text + mark)


def test_dates_read_what_was_written():
    rng = random.Random(0)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(3000):
        moment = start + timedelta(seconds=rng.randint(-5_000_000_000, 7_000_000_000))
        days, seconds = (moment - start).days, (moment - start).seconds
        for kind, form in (
            ("date:year", "%Y-%m-%d"),
            ("date:day", "%d.%m.%Y"),
            ("date:month", "%m/%d/%Y"),
        ):
            assert value(kind, moment.strftime(form)) == days
            assert value(kind, moment.strftime(f"{form} %H:%M:%S")) == days + seconds / 86400
            assert value(kind, moment.strftime(f"{form} %I:%M:%S %p")) == days + seconds / 86400
        there = moment.astimezone(timezone(timedelta(minutes=rng.randint(-14 * 60, 14 * 60))))
        assert value("date", there.isoformat()) == pytest.approx(days + seconds / 86400, abs=1e-9)


SEEDS = ("1,234.5", "1.234,5 €", "$-12", "90 min", "39%", "2024-01-31T10:00:00.5+01:00", "31.1.2024", "Jan 31, 2024")
LETTERS = string.printable + "€\u00a0\u202f\u2019\u2212²½٣\ud800\U0001f600\x00İß"


def mutated(rng: random.Random) -> str:
    cell = list(rng.choice(SEEDS))
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(cell) + 1)
        cell[at : at + rng.randint(0, 2)] = rng.choice(LETTERS) * rng.choice((0, 1, 1, 1, 50))
    return "".join(cell)


def test_mutated_cells_are_read_or_unreadable():
    rng = random.Random(0)
    texts = [mutated(rng) for _ in range(20_000)]
    for kind in ("number", "number:point", "number:comma", "number in min", "date:year", "date:day", "date:month"):
        values, unreadable = Kind.parse(kind).numbers(texts)
        assert not np.isinf(values).any()
        assert np.isnan(values[unreadable]).all()
        assert 0 < unreadable.sum() < len(texts)
    for first in range(0, len(texts), 4):
        kind_of(texts[first : first + 4], [1, 2, 1, 1])


def test_the_order_of_the_cells_does_not_matter():
    rng = random.Random(1)
    for _ in range(2000):
        start = rng.randrange(len(SEEDS) - 1)
        texts = [mutated(rng) if rng.random() < 0.1 else rng.choice(SEEDS[start : start + 2]) for _ in range(4)]
        cells = [(text, rng.choice((1, 1, 300))) for text in texts]
        shuffled = rng.sample(cells, 4)
        assert kind_of(*zip(*cells, strict=True)) == kind_of(*zip(*shuffled, strict=True))


def test_what_kind_of_finds_reads_nearly_all_cells():
    rng = random.Random(2)
    for _ in range(2000):
        texts = [mutated(rng) for _ in range(3)]
        counts = [rng.choice((1, 1000)) for _ in texts]
        for kind in kind_of(texts, counts):
            assert Kind.parse(str(kind)) == kind
            if kind.name in ("number", "date"):
                unreadable = kind.numbers(texts)[1]
                assert unreadable @ counts * 100 <= sum(counts), (texts, kind)
