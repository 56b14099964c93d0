import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel

device = "cuda"


def network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
        nn.Conv2d(width, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10),
    )


def soften(logits, temperature=4.0):
    return F.log_softmax(logits / temperature, dim=1)


teacher = network(64).to(device).eval()
for parameter in teacher.parameters():
    parameter.requires_grad = False
student = network(16).to(device)
average = AveragedModel(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=25),
    ],
    milestones=[5],
)
torch.cuda.reset_peak_memory_stats()
for step in range(30):
    images = torch.rand(32, 3, 32, 32, device=device)
    labels = torch.randint(0, 10, (32,), device=device)
    with torch.no_grad():
        taught = teacher(images)
    answer = student(images)
    loss = F.kl_div(soften(answer), soften(taught), reduction="batchmean", log_target=True)
    loss = 0.9 * loss + 0.1 * F.cross_entropy(answer, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step >= 20:
        average.update_parameters(student)
torch.cuda.synchronize()
print(f"loss {loss.item():.3f}, {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
torch.save({"student": student.state_dict(), "average": average.module.state_dict()}, "student.pt")
restored = network(16)
restored.load_state_dict(torch.load("student.pt", map_location="cpu")["average"])
