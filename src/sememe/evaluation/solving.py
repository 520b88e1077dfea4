"""The lowest place of a smooth loss, found by one thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


def lowest(loss: Loss, start: np.ndarray, *, num_steps: int) -> np.ndarray:
    """Where L-BFGS ends after so many steps at most; `loss` gives a value and its gradient."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    # Its thousand small products take twice as long when threads of BLAS share them.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": num_steps})
    return found.x
