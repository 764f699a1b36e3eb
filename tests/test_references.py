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

WALKS = re.findall(r"^```text\n(.*?)^```", PAGES[DOCS / "architecture.md"], re.MULTILINE | re.DOTALL)


def walked() -> set[str]:
    """Return the modules that the walks of the page on the architecture draw; names follow the package before them."""
    found = set()
    for line in "".join(WALKS).splitlines():
        package = ""
        for name in re.split(r"\s{2,}", line.strip())[0].split(", "):
            if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", name) and name != "report.html":
                package = name.rpartition(".")[0] or package
                found.add(".".join(filter(None, ("graphmrf", package, name.rpartition(".")[2]))))
    return found


def resolved(name: str) -> Any:
    """Return what a dotted name stands for: modules as far as there are any, then attributes."""
    module, _, attribute = name.rpartition(".")
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return getattr(resolved(module), attribute)


@pytest.mark.parametrize("name", sorted(NAMES | MEMBERS | walked()))
def test_the_reference_exists(name: str) -> None:
    assert resolved(name) is not None
