"""How `deft-profile` starts the script of a user, and what becomes of it."""
