"""Elastic training under MPI, which has no elastic jobs."""

from tests.parallel.cases import case_tests

test_case = case_tests("failures/fail_elastic_mpi.py", limit_s=60)
