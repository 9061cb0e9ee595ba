"""What ``stats()`` says, written to files while a job trains."""
