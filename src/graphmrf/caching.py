"""Cached properties: `functools.cached_property` without a lock.

Python 3.11 holds one lock for all objects of a class while it computes such a value: a process forked meanwhile by
another thread waits for that lock forever, and threads with graphs of their own wait for each other. From Python 3.12
on there is none. Two threads that ask one object at once both compute the value, and one is cached.
"""

import sys
from typing import TYPE_CHECKING

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    import functools

    class cached_property(functools.cached_property):  # noqa: N801 - the name everybody knows
        """A property computed once for every object and cached among its attributes."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            cached = instance.__dict__
            if self.attrname not in cached:
                cached[self.attrname] = self.func(instance)
            return cached[self.attrname]
