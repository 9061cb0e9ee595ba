"""Where things are, whatever folder a test is in."""

from scripts.places import ROOT

__all__ = ["ROOT"]
