"""Learning leaves the cores to others."""

import numpy as np
import pytest
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from analyzer.learning.one_thread import on_one_thread


def blas_threads() -> list[int]:
    assert np.isfinite(linalg.solve(np.eye(2), np.ones(2))).all()  # both libraries are loaded
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_one_thread_while_the_function_runs_and_its_own_afterwards() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        within = on_one_thread(blas_threads)()
        assert set(before) == {2}
        assert within == [1] * len(before)
        assert blas_threads() == before


def test_an_error_gives_the_threads_back() -> None:
    @on_one_thread
    def fail() -> None:
        raise ValueError("no traces")

    with threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(ValueError, match="no traces"):
            fail()
        assert set(blas_threads()) == {2}
