"""The parts of a report, one file each."""
