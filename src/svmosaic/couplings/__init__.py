"""How tiles share strength: none, a global vector, groups."""

from svmosaic.couplings._coupling import Coupling

__all__ = ["Coupling"]
