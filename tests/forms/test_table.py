"""The table `forms.tsv`: every form in which other agents' documents write calls, settings, events, records and data,
and what became of it here.

`accepted` is read, `produced` is written or sent, `partly` is some of it; `contract` is decided otherwise by what this
product promises, `inside` is a name within a program, `kept` stayed as it was. Every row but those says what shows it
(`checks.py`), and every row that is not whole says why.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.forms.checks import CHECKS

WHOLE, SHOWN = ("accepted", "produced"), ("accepted", "produced", "partly")
BECAME = (*SHOWN, "contract", "inside", "kept")
ROWS_OF = {1: 25, 2: 54, 3: 7, 4: 23, 5: 14, 6: 12, 7: 16, 8: 16, 9: 30, 10: 7}
MOST_KEPT = 6

with Path(__file__).with_name("forms.tsv").open(encoding="utf-8", newline="") as file:
    TABLE = tuple(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["form"])
def test_a_form_became_what_the_table_says(row: dict[str, str]) -> None:
    shown = json.loads(row["shown by"] or "[]")
    assert row["says"] and row["became"] in BECAME
    assert shown or row["became"] not in SHOWN, "nothing shows it"
    assert row["why"] or row["became"] in WHOLE, "no reason"
    for name, *values in shown:
        CHECKS[name](*values)


def test_every_form_has_one_row() -> None:
    assert [row["form"] for row in TABLE] == [
        f"{section}.{number:02}" for section, count in ROWS_OF.items() for number in range(1, count + 1)
    ]
    assert len({row["says"] for row in TABLE}) == len(TABLE)


def test_few_forms_stay_without_a_promise_that_decides() -> None:
    assert Counter(row["became"] for row in TABLE)["kept"] <= MOST_KEPT
