"""Names that the reference pages show can be imported."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}
NAMES = {name for text in PAGES.values() for name in re.findall(r"(?:^::: |\]\[)(graphmrf[\w.]*)", text, re.MULTILINE)}
MEMBERS = {
    f"{module}.{name}"
    for text in PAGES.values()
    for module, names in re.findall(r"^::: (\S+)\n +options:\n +members: \[(.*?)\]", text, re.MULTILINE)
    for name in names.split(", ")
}


def resolved(name: str) -> Any:
    """Return what a dotted name stands for: modules as far as there are any, then attributes."""
    module, _, attribute = name.rpartition(".")
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return getattr(resolved(module), attribute)


@pytest.mark.parametrize("name", sorted(NAMES | MEMBERS))
def test_the_reference_exists(name: str) -> None:
    assert resolved(name) is not None
