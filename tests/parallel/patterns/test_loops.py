"""Training loops as Horovod's documentation and examples write them, on two ranks."""

from tests.parallel.cases import case_tests

test_case = case_tests("patterns/loops.py")
