"""The long form of the fault campaign."""
