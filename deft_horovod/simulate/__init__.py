"""What a profiled job would do on another cluster. Pure: no torch, no Horovod, no clock.

`cluster` says what messages cost there, `stock` plays Horovod's own scheduling, `outlook` sets what
each policy would do beside what none could beat.
"""
