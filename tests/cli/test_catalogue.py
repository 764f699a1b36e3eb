"""Bad and odd inputs: every one has the right answer or a refusal with its remedy."""

import pytest

from catalogue import Odd
from catalogue_commands import COMMANDS
from catalogue_containers import CONTAINERS
from catalogue_tables import TABLES

pytestmark = pytest.mark.slow

CATALOGUE = (*COMMANDS, *TABLES, *CONTAINERS)


@pytest.mark.parametrize("case", CATALOGUE, ids=[case.name[:60] for case in CATALOGUE])
def test_an_odd_input_is_answered_or_refused(case: Odd) -> None:
    outcome, said = case.outcome()
    assert outcome == ("refused" if case.says else "right"), said


def test_there_are_at_least_four_hundred_different_ones() -> None:
    assert len({case.name for case in CATALOGUE}) == len(CATALOGUE) >= 400
