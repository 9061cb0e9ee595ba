"""Settings of all unit tests."""

from hypothesis import settings

# Examples have no time limit of their own, as machines may be busy; each test has one.
settings.register_profile("unit", deadline=None, print_blob=True)
settings.load_profile("unit")
