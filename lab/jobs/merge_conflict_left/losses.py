"""Loss functions of the detector."""
import torch
import torch.nn.functional as F


<<<<<<< HEAD
def focal_loss(logits, target, gamma=2.0):
=======
def focal_loss(logits, target, gamma=1.5, alpha=0.25):
>>>>>>> tuning
    log_p = F.log_softmax(logits, dim=1)
    log_p = log_p.gather(1, target[:, None])[:, 0]
    return -((1 - log_p.exp()) ** gamma * log_p).mean()
