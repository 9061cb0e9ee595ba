"""The schedulers of papers and of other systems, one file each."""
