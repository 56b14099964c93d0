import argparse
import os

import torch
from torch import nn
import torch.nn.functional as F


def network(width):
    return nn.Sequential(nn.Linear(40, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 30))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--teacher-dir", default=os.environ.get("TEACHER_DIR", "exp/teacher"))
    parser.add_argument("--teacher-epoch", type=int, default=40)
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--steps", type=int, default=200)
    return parser.parse_args()


def load_teacher(args):
    teacher = network(256)
    state = torch.load(os.path.join(args.teacher_dir, f"epoch_{args.teacher_epoch:03d}.pt"), map_location="cpu")
    teacher.load_state_dict(state["model"])
    return teacher.eval().requires_grad_(False)


def main():
    args = get_args()
    student = network(64)
    teacher = load_teacher(args)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for step in range(args.steps):
        x = torch.randn(32, 40)
        t = args.temperature
        loss = F.kl_div(F.log_softmax(student(x) / t, -1), F.softmax(teacher(x) / t, -1), reduction="batchmean") * t * t
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(student.state_dict(), "student.pt")


if __name__ == "__main__":
    main()
