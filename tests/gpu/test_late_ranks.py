"""Late updates on a GPU, bit for bit those of plain torch there."""

from tests.gpu.ranks import program_test

test_cases = program_test("runtime/late.py")
