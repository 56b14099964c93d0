from pytorch_lightning.utilities.distributed import rank_zero_only


@rank_zero_only
def announce(metrics):
    for name, value in sorted(metrics.items()):
        print(f"{name:>20} {float(value):.4f}")
