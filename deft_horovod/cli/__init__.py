"""deft-profile: what a training job does on its network, and what it would gain.

One file for each subcommand; `main` finds them by name and loads only the one that is asked for.
"""
