"""Our optimizer over torch.distributed beside torch's DistributedDataParallel."""
