"""Files as people export them: each is read like the plain files, or refused with a remedy; none is misread."""

from pathlib import Path

import pytest

from file_variants import VARIANTS, Variant


@pytest.mark.parametrize("variant", VARIANTS, ids=[variant.name for variant in VARIANTS])
def test_a_variant_is_understood_or_refused(variant: Variant, tmp_path: Path) -> None:
    outcome, told = variant.outcome(tmp_path)
    assert outcome == ("refused" if variant.refused else "understood"), told


def test_there_are_at_least_sixty_different_ones() -> None:
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS) >= 60
