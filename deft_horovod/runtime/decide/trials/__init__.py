"""Candidates that take turns: what they took, who needs no more turns, who needs another one."""
