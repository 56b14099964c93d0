from torch.optim import lr_scheduler

KNOWN = {
    "cosine": lambda optimizer, epochs: lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs),
    "steps": lambda optimizer, epochs: lr_scheduler.StepLR(optimizer, step_size=max(1, epochs // 3)),
    "plateau": lambda optimizer, epochs: lr_scheduler.ReduceLROnPlateau(optimizer, patience=2),
}


def schedule(name, optimizer, epochs):
    return KNOWN[name](optimizer, epochs)
