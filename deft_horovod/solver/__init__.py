"""Pure functions from parameters and measurements to layouts, buckets and orders.

Nothing here reads a clock, an environment or a device: same input, same output, on every machine.
"""
