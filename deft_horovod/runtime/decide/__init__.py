"""Which policy runs next, and why."""
