"""What a solver returns."""

from dataclasses import dataclass

import numpy as np

from svmosaic.solvers.certificates import Certificate


@dataclass(frozen=True)
class Solution:
    """A certified answer to a `Problem`.

    Attributes
    ----------
    certificate : Certificate
        Block weights with their primal value, dual value and gap.
    alpha : ndarray of shape (n_rows,)
        The dual point of the certificate; start the next solve from it.
    n_iter : int
        Epochs of descent, or Newton steps.
    target : float
        The gap that was asked for, tol * P(0).
    solver : {"dual", "newton", "sgd", "crammer_singer"}
        Which one gave the answer.
    settled : bool or None
        For a solver without a dual point: whether it met its own stop rule.
    """

    certificate: Certificate
    alpha: np.ndarray
    n_iter: int
    target: float
    solver: str
    settled: bool | None = None

    @property
    def weights(self):
        return self.certificate.weights

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def converged(self) -> bool:
        return self.gap <= self.target if self.settled is None else self.settled
