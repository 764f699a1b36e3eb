"""MkDocs hook: pages of the gallery from the examples, their pictures and their code; and the changelog as a page."""

import ast
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parents[2]
_INTRO = """# Gallery

Each picture comes with the code that draws it. Data come with a package
(libpysal, NetworkX) or are generated. `make gallery` redraws them.

<div class="gallery" markdown>

"""


def on_files(files: Files, config: Any) -> Files:
    """Add the page of every example, their overview, and the changelog."""
    scripts = sorted((_ROOT / "examples" / "gallery").glob("[a-z]*.py"))
    cards = "".join(_card(path) for path in scripts)
    files.append(File.generated(config, "gallery.md", content=f"{_INTRO}{cards}</div>\n"))
    for path in scripts:
        files.append(File.generated(config, f"gallery/{path.stem}.md", content=_page(path)))
    files.append(File.generated(config, "changelog.md", content=(_ROOT / "CHANGELOG.md").read_text("utf-8")))
    return files


def _card(path: Path) -> str:
    title, _ = _title_and_text(path)
    return f"- [![](images/gallery/{path.stem}.png)<br>{title}](gallery/{path.stem}.md)\n"


def _page(path: Path) -> str:
    title, text = _title_and_text(path)
    code = path.read_text("utf-8").split('"""\n', 2)[-1].strip()
    back = "[All pictures](../gallery.md)"
    return f"# {title}\n\n{text}\n\n![{title}](../images/gallery/{path.stem}.png)\n\n```python\n{code}\n```\n\n{back}\n"


def _title_and_text(path: Path) -> tuple[str, str]:
    """Return title and text of an example: the first line of its docstring, and the others."""
    title, _, text = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or path.stem).partition("\n")
    return title.rstrip("."), text.strip()
