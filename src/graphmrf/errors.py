"""What graphmrf raises: every message states the rule, the finding and the remedy."""


class GraphMRFError(Exception):
    """Base of everything graphmrf raises on purpose."""


class InvalidInputError(GraphMRFError, ValueError):
    """The caller's data or options break a rule; the message names the place and the remedy."""


class ConvergenceError(GraphMRFError, RuntimeError):
    """An iterative method stopped before it reached its tolerance."""


class MissingExtraError(GraphMRFError, ImportError):
    """An optional dependency is not installed; the message gives the install line."""


class FetchError(GraphMRFError, OSError):
    """A published data set could not be downloaded or cached; nothing broken is left, so another try may work."""


class ClusterError(GraphMRFError, RuntimeError):
    """A cluster cannot be reached, does not fit the work, or lost too much of it; the message gives the remedy."""
