"""Which machines for which training jobs. Pure: no torch, no Horovod, no clock.

`input` reads what is asked, `times` lets the simulator say how long each job takes where, `problem`
holds what is left of that for the methods of `schedule` (all deadlines for the least rent), and
`consolidate` packs jobs that must keep a throughput on the fewest machines.
"""
