"""Methods that put jobs that must keep a throughput on the fewest machines."""
