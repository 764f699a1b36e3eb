"""Values that are kept: computed once, and no object waits for another of its class."""

import re
from pathlib import Path
from threading import Thread

import graphmrf
from graphmrf.caching import cached_property

SOURCE = Path(graphmrf.__file__).parent


class Chained:
    """An object whose value needs that of another one, computed by another thread."""

    def __init__(self, other: "Chained | None" = None) -> None:
        self.other, self.computed = other, 0

    @cached_property
    def value(self) -> int:
        """One more than that of the other."""
        self.computed += 1
        if self.other is None:
            return 0
        thread = Thread(target=lambda: getattr(self.other, "value", None), daemon=True)
        thread.start()
        thread.join(timeout=10.0)  # for ever, under a lock of the class
        assert not thread.is_alive()
        return 1 + self.other.value


def test_values_are_computed_once_and_by_threads_at_the_same_time() -> None:
    last = Chained()
    first = Chained(last)
    assert (first.value, first.value, last.value) == (1, 1, 0)
    assert (first.computed, last.computed) == (1, 1)
    assert isinstance(vars(Chained)["value"], cached_property)


def test_no_module_keeps_values_under_a_lock() -> None:
    locked = re.compile(r"functools import .*cached_property|functools\.cached_property")
    found = {path.name for path in SOURCE.rglob("*.py") if locked.search(path.read_text())}
    assert found == {"caching.py"}
