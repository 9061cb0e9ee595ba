"""Methods that put jobs that must keep a throughput on the fewest machines.

After "consolidation of several applications" (arXiv 1604.08330): which application gets which
virtual machines and where these run is one integer programme. Here an application is a training job
(a tenant), and a virtual machine is the part of it on one machine: so many ranks with their memory.
"""
