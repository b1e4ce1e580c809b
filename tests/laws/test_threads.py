"""Formulas evaluated a few thousand rows at a time, side by side, are the formulas."""

from __future__ import annotations

import itertools
import multiprocessing
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from surefit import _threads
from surefit._threads import by_rows, max_rows, one_thread, over_rows, rows_only, sum_rows


@pytest.mark.parametrize("n", [1, 7, 8192, 8193, 100_003])
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_formula_by_rows_is_the_formula(n, columns, threads):
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((n, *columns)), rng.random(n)
    with threadpool_limits(threads, user_api="blas"):
        np.testing.assert_array_equal(by_rows(np.exp, x), np.exp(x))
        pair = by_rows(lambda x, s: np.column_stack([x.reshape(len(s), -1), s]), x, s)
        np.testing.assert_array_equal(pair, np.column_stack([x.reshape(n, -1), s]))
        np.testing.assert_allclose(sum_rows(lambda s, x: s @ x, s, x), s @ x, atol=1e-11 * n)
        assert max_rows(lambda x: float(x.max()), x) == x.max()


def test_stretches_cover_the_rows_once_and_in_order():
    for n in (1, 4096, 8192, 100_001):
        with threadpool_limits(2, user_api="blas"):
            ends = over_rows(n, lambda first, last: (first, last))
        assert ends[0][0] == 0
        assert ends[-1][1] == n
        assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))


def test_an_error_in_a_stretch_arrives_and_the_next_call_works():
    def broken(first, last):
        raise ZeroDivisionError(first)

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError):
            over_rows(100_000, broken)
        assert len(over_rows(100_000, lambda first, last: 0)) == 2


def test_the_matrix_library_has_one_thread_while_rows_are_split_and_its_own_after():
    def threads():
        return {
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        }

    with threadpool_limits(2, user_api="blas"):
        with rows_only(np.zeros((10_000, 3))):
            assert threads() == {1}
            assert len(over_rows(100_000, lambda first, last: 0)) == 2  # the rows still have two
            with rows_only(np.zeros((10_000, 3))):
                assert len(over_rows(100_000, lambda first, last: 0)) == 2
        assert threads() == {2}
        with rows_only(np.zeros((300, 3_000))):  # wide: the products are large
            assert threads() == {2}


@pytest.mark.parametrize("first", [True, False], ids=["the setter leaves first", "last"])
def test_two_fits_that_overlap_leave_the_threads_as_they_were(first):
    """A limit set by one thread and taken back by another stays for good in some builds of OpenBLAS."""

    def threads():
        return {
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        }

    with threadpool_limits(2, user_api="blas"):
        inside, leave = threading.Event(), threading.Event()

        def other():
            with one_thread:
                inside.set()
                leave.wait()

        thread = threading.Thread(target=other)
        with one_thread:
            thread.start()
            inside.wait()
            assert threads() == {1}
            assert one_thread.allowed == 2
            if not first:
                leave.set()
                thread.join()
                assert threads() == {1}
        assert threads() == {2}
        leave.set()
        thread.join()
        assert threads() == {2}
        assert one_thread.allowed == 2


def test_fits_side_by_side_do_not_split_again():
    counts = []

    def outer(first, last):
        counts.append(len(over_rows(100_000, lambda a, b: threading.get_ident())))

    with threadpool_limits(2, user_api="blas"):
        over_rows(100_000, outer)
    assert counts == [1, 1]


def _in_a_child(queue):
    queue.put(len(over_rows(100_000, lambda first, last: 0)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    with threadpool_limits(2, user_api="blas"):
        over_rows(100_000, lambda first, last: 0)
        assert _threads._helpers.cache_info().currsize
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_in_a_child, args=(queue,))
        child.start()
        found = queue.get(timeout=60)
        child.join(timeout=60)
    assert found >= 1
    assert child.exitcode == 0
