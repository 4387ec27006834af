"""How tiles share strength: none, a global vector, groups."""

from svmosaic.couplings._coupling import Coupling
from svmosaic.couplings.clustered import ClusteredTasks

__all__ = ["ClusteredTasks", "Coupling"]
