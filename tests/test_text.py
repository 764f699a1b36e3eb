"""Numbers and names as people read them."""

import numpy as np

from graphmrf.text import decimals, did_you_mean, near_or_all, number, r2_range


def test_near_names_are_suggested() -> None:
    assert did_you_mean("incom", ["age", "income"]) == "did you mean 'income'? "
    assert did_you_mean("rent", ["age", "income"]) == ""
    assert near_or_all("us-2015", ["us-2016", "london"]) == "did you mean 'us-2016'?"
    assert near_or_all("mars", ["us-2016", "london"]) == "there are us-2016, london"


def test_numbers_have_the_digits_of_their_spread() -> None:
    assert [decimals(values) for values in ([0.0, 10.0], [0.0, 50_000.0], [0.0, 1e-9])] == [2, 0, None]
    shown = [number(51234.5, 0), number(np.nan), number(1.5e-9, None), number(-0.001, 2)]
    assert shown == ["51,234", "\N{EN DASH}", "1.50e\N{MINUS SIGN}09", "0.00"]


def test_an_uncertain_accuracy_has_a_range() -> None:
    assert [r2_range(0.45, 0.125), r2_range(0.6512, 0.02), r2_range(0.45, np.nan)] == ["0.20 to 0.70", "", ""]
