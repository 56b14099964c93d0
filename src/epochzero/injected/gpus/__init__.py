"""GPUs that are not there: what `torch.cuda` answers for them, and a job for them on the CPU."""
