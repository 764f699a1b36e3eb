"""MkDocs hook: turn TeX into MathML, so that pages need no script to show it: of pages, and of docstrings."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.+?)\\[)\]]</\1>', re.DOTALL)
_ROLE = re.compile(r":math:<code>(.+?)</code>", re.DOTALL)
_DIRECTIVE = re.compile(r"<p>\.\. math::\s*(.+?)</p>", re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """HTML of a page, its formulas as MathML."""
    content = _FORMULA.sub(lambda found: _mathml(found[2], block=found[1] == "div"), content)
    content = _ROLE.sub(lambda found: _mathml(found[1], block=False), content)
    return _DIRECTIVE.sub(lambda found: f"<p>{_mathml(found[1], block=True)}</p>", content)


def _mathml(tex: str, *, block: bool) -> str:
    return str(convert(html.unescape(re.sub("<[^>]+>", "", tex)), display="block" if block else "inline"))
