"""Checks of this project that no off-the-shelf linter knows."""
