"""The ranks of a job: what they agree on, wait for, and reduce together."""
