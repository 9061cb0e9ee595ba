"""Methods of `deft_horovod.capacity` on seeded instances, beside what two papers report."""
