"""What a long fit says of its stages on the logger ``graphmrf.progress``, for whoever shows it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGER = "graphmrf.progress"


class _Listener(logging.Handler):
    def __init__(self, show: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message on, on one line."""
        self._show(" ".join(record.getMessage().split()))


@contextmanager
def listened_to(show: Callable[[str], object]) -> Iterator[None]:
    """Call `show` with every message of the logger while the block runs, and leave the logger as it was.

    Examples
    --------
    >>> with listened_to(print):
    ...     logging.getLogger(LOGGER).info("solving for %d columns", 3)
    solving for 3 columns
    """
    logger, listener = logging.getLogger(LOGGER), _Listener(show)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagates
